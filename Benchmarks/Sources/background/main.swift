// SPDX-License-Identifier: Apache-2.0

// What background transfers cost: `background [URL]`, with the URL of a large file. The agent is the url-loading-agent
// beside this program. Its state, and the files that it downloads, are in a temporary folder.

import FoundationEssentials
import Glibc
import Synchronization
import URLLoading

/// Prints a row of the table: what was measured, the figure, and the goal.
func show(_ name: String, _ figure: Double, _ unit: String, goal: String = "") {
    let rounded = figure >= 100 ? "\(Int(figure.rounded()))" : "\((figure * 10).rounded() / 10)"
    print("| \(name) | \(rounded) \(unit) | \(goal) |")
    fflush(nil)
}

/// Returns the seconds that the work takes.
func measured(_ work: () async throws -> Void) async rethrows -> Double {
    let began = ContinuousClock.now
    try await work()
    return (ContinuousClock.now - began) / .seconds(1)
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Returns the content of a file of `/proc`, at most 64 KiB; empty if it cannot be read.
func text(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    let count = read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

/// An agent, known by the folder of its state.
struct Agent {
    let folder: String

    init(_ folder: String) {
        self.folder = folder
        mkdir(folder, 0o700)
    }

    /// Creates a session, whose first use starts the agent.
    func session() -> Session {
        setenv("XDG_STATE_HOME", folder, 1)
        var configuration = Configuration.background("org.example.benchmark")
        configuration.cookies.storage = .none
        configuration.hsts.storage = .none
        return Session(configuration)
    }

    private var process: pid_t? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.lazy.compactMap { pid_t($0) }.first {
            $0 != getpid() && text("/proc/\($0)/cmdline").contains(folder + "/")
        }
    }

    /// Returns a line of the agent's status that has a size, in MiB: `VmRSS`, `VmHWM`.
    func size(_ name: String) -> Double {
        guard let process else { return .nan }
        let line = text("/proc/\(process)/status").split(separator: "\n").first { $0.hasPrefix(name + ":") }
        let kilobytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
        return (kilobytes.flatMap { Double($0) } ?? .nan) / 1024
    }

    /// Ends the agent, and returns when it has exited.
    func stop() {
        while let process {
            kill(process, SIGTERM)
            usleep(10_000)
        }
    }
}

/// Asks agents that do not run yet how long their transfers survive: the agent is started, makes its journal, and
/// records the session before it answers.
func measureColdStart(_ folder: String) async throws {
    var times: [Double] = []
    for number in 1...7 {
        let agent = Agent("\(folder)/cold\(number)")
        let session = agent.session()
        times.append(try await measured { _ = try await session.background.survival })
        session.invalidateAndCancel()
        await session.invalidated()
        agent.stop()
    }
    show("first answer of an agent that is started for it", median(times) * 1000, "ms", goal: "≤ 50")
}

/// Hands 10,000 transfers over that begin later, lists them and cancels them.
func measureTransfers(_ folder: String) async throws {
    let agent = Agent("\(folder)/transfers")
    let session = agent.session()
    let background = session.background
    _ = try await background.survival
    show("memory of an agent without transfers", agent.size("VmRSS"), "MiB")
    let (count, pageSize) = (10_000, 500)
    guard let url = URL(string: "http://127.0.0.1:9/film.mp4") else { return }
    let later = Date(timeIntervalSinceNow: 3600)
    let accepting = try await measured {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    var options = BackgroundOptions(label: "film \(number)")
                    options.earliestBegin = later
                    try await background.download(Request(url: url), options: options)
                }
            }
            try await group.waitForAll()
        }
    }
    show("transfers accepted, of 10,000 at once", Double(count) / accepting, "/s", goal: "≥ 2,000")
    var times: [Double] = []
    for _ in 0..<5 {
        let listing = try await measured {
            let transfers = try await background.transfers
            precondition(transfers.count == count)
        }
        times.append(listing / Double(count / pageSize))
    }
    show("a page of the list (500 transfers)", median(times) * 1000, "ms", goal: "≤ 50")
    show("memory of the agent with 10,000 transfers", agent.size("VmRSS"), "MiB", goal: "≤ 40")
    show("its peak", agent.size("VmHWM"), "MiB")
    let transfers = try await background.transfers
    let cancelling = try await measured {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for transfer in transfers { group.addTask { try await transfer.cancel() } }
            try await group.waitForAll()
        }
    }
    show("transfers cancelled, 10,000 at once", Double(count) / cancelling, "/s")
    let most = 1_000
    let handled = Atomic(0)
    let handling = try await measured {
        try await background.handleEvents { _ in
            if handled.add(1, ordering: .relaxed).newValue == most { session.finishTasksAndInvalidate() }
        }
    }
    show("events handled and acknowledged, one after the other", Double(most) / handling, "/s")
    await session.invalidated()
    agent.stop()
}

/// Downloads a large file in this process and in the agent, in turns.
func measureFile(_ url: URL, _ folder: String, _ place: String) async throws {
    let agent = Agent("\(folder)/file")
    let (direct, background) = (Session(.ephemeral), agent.session())
    _ = try await background.background.survival
    let file = URL(filePath: folder + "/large")
    var ratios: [Double] = []
    for _ in 0..<5 {
        var times: [Double] = []
        for session in [direct, background] {
            unlink(folder + "/large")
            sync()
            // The agent synchronises its files.
            let options = DownloadOptions(destination: file, synchronizes: true)
            times.append(
                try await measured {
                    let task = session.downloadTask(Request(url: url), options: options)
                    task.resume()
                    _ = try await task.value
                })
        }
        ratios.append(times[0] / times[1])
    }
    show("rate of a large file \(place), to a download in the process", median(ratios) * 100, "%", goal: "≥ 95")
    direct.invalidateAndCancel()
    background.invalidateAndCancel()
    await background.invalidated()
    agent.stop()
}

/// Calls a closure with a temporary folder, in which nothing listens that would be taken for an agent.
func withFolder(below parent: String, _ use: (String) async throws -> Void) async throws {
    var template = Array("\(parent)/urlbench-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { return perror(parent) }
    let folder = String(cString: made)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    setenv("XDG_RUNTIME_DIR", folder + "/none", 1)
    setenv("XDG_CACHE_HOME", folder + "/cache", 1)
    unsetenv("URLLOADING_AGENT_SOCKET")
    try await use(folder)
}

func measureAll(_ large: URL?) async throws {
    print("| | measured | goal |\n|---|---|---|")
    try await withFolder(below: ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp") { folder in
        try await measureColdStart(folder)
        try await measureTransfers(folder)
        if let large { try await measureFile(large, folder, "on the disk") }
    }
    guard let large else { return }
    try await withFolder(below: "/dev/shm") { folder in try await measureFile(large, folder, "in memory") }
}

try await measureAll(CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) })
