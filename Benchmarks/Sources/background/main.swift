// SPDX-License-Identifier: Apache-2.0

// What background transfers cost: `background AGENT [URL]`, with the path of url-loading-agent and the URL of a large
// file. It uses an agent and a state folder of its own.

import FoundationEssentials
import Glibc
import Synchronization
import URLLoading

struct Usage: Error {}

/// A line of the output: what was measured, the figure, and the goal.
func show(_ name: String, _ figure: Double, _ unit: String, goal: String) {
    let rounded = (figure * 10).rounded() / 10
    print("\(name): \(rounded) \(unit) (goal: \(goal))")
}

func measured(_ work: () async throws -> Void) async rethrows -> Double {
    let clock = ContinuousClock()
    let began = clock.now
    try await work()
    let spent = clock.now - began
    return Double(spent.components.seconds) + Double(spent.components.attoseconds) / 1e18
}

/// Returns the largest resident size of the agent of a folder, in MiB.
func sizeOfAgent(_ folder: String) -> Double {
    for process in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
        guard let line = try? Data(contentsOf: URL(filePath: "/proc/\(process)/cmdline")),
            String(decoding: line, as: UTF8.self).contains(folder),
            let status = try? Data(contentsOf: URL(filePath: "/proc/\(process)/status")),
            let row = String(decoding: status, as: UTF8.self).split(separator: "\n").first(where: {
                $0.hasPrefix("VmHWM:")
            }), let kilobytes = row.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
        else { continue }
        return kilobytes / 1024
    }
    return 0
}

/// Hands 10,000 transfers over that begin later, lists them and cancels them.
func measureTransfers(_ session: Session, _ folder: String) async throws {
    let count = 10_000
    let url = URL(string: "http://127.0.0.1:9/")!
    let accepting = try await measured {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    var options = BackgroundOptions(label: "\(number)")
                    options.earliestBegin = Date(timeIntervalSinceNow: 3600)
                    try await session.background.download(Request(url: url), options: options)
                }
            }
            try await group.waitForAll()
        }
    }
    show("accepted", Double(count) / accepting, "a second", goal: "2,000")
    var transfers: [BackgroundTransfer] = []
    let listing = try await measured { transfers = try await session.background.transfers }
    show("a page of the list", listing / Double(count / 500) * 1000, "ms", goal: "50")
    show("the agent's memory with \(transfers.count) transfers", sizeOfAgent(folder), "MiB", goal: "40")
    for transfer in transfers { try await transfer.cancel() }
    let handled = Atomic(0)
    let handling = try await measured {
        try await session.background.handleEvents { _ in
            let number = handled.add(1, ordering: .relaxed).newValue
            if number == count { session.finishTasksAndInvalidate() }
        }
    }
    show("events handled", Double(count) / handling, "a second", goal: "none")
}

/// Downloads a large file in this process and in the agent, in turns.
func measureFile(_ url: URL, _ folder: String) async throws {
    let direct = Session(.ephemeral)
    let background = Session(.background("org.example.benchmark.file"))
    let place = URL(filePath: folder + "/file")
    var times: [Double] = [.infinity, .infinity]
    for _ in 0..<3 {
        for (index, session) in [direct, background].enumerated() {
            // The agent synchronises its files.
            let options = DownloadOptions(destination: place, synchronizes: true)
            let time = try await measured {
                let task = session.downloadTask(Request(url: url), options: options)
                task.resume()
                _ = try await task.value
            }
            times[index] = min(times[index], time)
        }
    }
    show("rate of a large file", 100 * times[0] / times[1], "% of that in this process", goal: "95")
    background.invalidateAndCancel()
}

guard CommandLine.arguments.count >= 2 else { throw Usage() }
var template = Array("/tmp/urlbench-XXXXXX".utf8CString)
guard let made = mkdtemp(&template) else { throw Usage() }
let folder = String(cString: made)
defer { try? FileManager.default.removeItem(atPath: folder) }
setenv("URLLOADING_AGENT", CommandLine.arguments[1], 1)
setenv("XDG_STATE_HOME", folder, 1)
setenv("XDG_RUNTIME_DIR", folder + "/none", 1)

let session = Session(.background("org.example.benchmark"))
let cold = try await measured { _ = try await session.background.survival }
show("first answer of a cold agent", cold * 1000, "ms", goal: "50")
try await measureTransfers(session, folder)
await session.invalidated()
if CommandLine.arguments.count > 2, let url = URL(string: CommandLine.arguments[2]) {
    try await measureFile(url, folder)
}
