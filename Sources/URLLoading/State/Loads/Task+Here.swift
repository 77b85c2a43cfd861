// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension Task where Failure == Never {
    /// Starts a task that runs on the calling thread until it first suspends. It continues where the calling task runs:
    /// on the loop's executor if that task prefers it, otherwise in the pool. Unstructured tasks do not inherit that.
    /// - Parameter priority: nil for the priority of the calling task.
    @discardableResult
    static func here(
        priority: TaskPriority? = nil, _ operation: sending @escaping @isolated(any) () async -> Success
    ) -> Task<Success, Never> {
        let prefersLoop = withUnsafeCurrentTask { $0?.unownedTaskExecutor == Poller.shared.asUnownedTaskExecutor() }
        return Task.immediate(
            priority: priority, executorPreference: prefersLoop ? Poller.shared : nil, operation: operation)
    }
}
