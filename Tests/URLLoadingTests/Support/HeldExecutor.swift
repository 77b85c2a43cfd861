// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingTestSupport

/// Runs the jobs of tasks, and while it is closed keeps them: a thread that the machine does not give yet.
final class HeldExecutor: TaskExecutor {
    let jobs = Watched<(waiting: [UnownedJob], isOpen: Bool)>((waiting: [], isOpen: true))

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let runs = jobs.change { jobs in
            if !jobs.isOpen { jobs.waiting.append(job) }
            return jobs.isOpen
        }
        if runs { run([job]) }
    }

    func close() { jobs.change { $0.isOpen = false } }
    func open() {
        run(
            jobs.change { jobs in
                jobs.isOpen = true
                defer { jobs.waiting = [] }
                return jobs.waiting
            })
    }

    private func run(_ jobs: [UnownedJob]) {
        BlockingThreads.shared.run { for job in jobs { job.runSynchronously(on: self.asUnownedTaskExecutor()) } }
    }
}
