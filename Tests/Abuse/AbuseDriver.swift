// SPDX-License-Identifier: Apache-2.0

// Starts children, one after the other or two at a time, against servers in this process, and reports how they ended.

import Foundation
import Synchronization
import URLLoadingIO
import URLLoadingTestChildren

/// The options of one child, all made from its seed.
struct ChildPlan: Sendable {
    var seed: UInt64
    var operations: Int
    var inFlight: Int
    var cores: Int?
    var descriptors: Int?
    var memory: Int?
    var threads: Int?
    var leave: Int?
    var end: String
    var only: [String]
    var without: [String]

    init(seed: UInt64, _ arguments: AbuseArguments) {
        // Other numbers than those of the operations.
        var dice = Dice(seed: seed ^ 0xC0FFEE)
        self.seed = seed
        inFlight = dice.pick([4, 32, 64, 64, 128])
        // Children of about the same duration.
        operations = (arguments.operations ?? 3_000) * min(inFlight, 64) / 64
        cores = dice.chance(30) ? 1 : nil
        descriptors = dice.chance(20) ? dice.number(60..<150) : nil
        memory = dice.chance(15) ? 8_192 : nil
        threads = dice.chance(15) ? dice.number(40..<100) : nil
        leave = dice.chance(20) ? dice.number(0..<3_000) : nil
        end = dice.chance(50) ? "exit" : "return"
        (only, without) = (arguments.only.sorted(), arguments.without.sorted())
        replace(by: arguments)
    }

    /// Takes what was given for all children in place of what the seed has chosen.
    mutating func replace(by arguments: AbuseArguments) {
        cores = arguments.cores ?? cores
        descriptors = arguments.descriptors ?? descriptors
        memory = arguments.memory ?? memory
        threads = arguments.threads ?? threads
        leave = arguments.leave ?? leave
    }

    /// The options as they were given, for a child that is repeated.
    init(repeating arguments: AbuseArguments, seed: UInt64) {
        self.seed = seed
        operations = arguments.operations ?? 3_000
        inFlight = arguments.inFlight
        (cores, descriptors, memory) = (arguments.cores, arguments.descriptors, arguments.memory)
        (threads, leave, end) = (arguments.threads, arguments.leave, arguments.end)
        (only, without) = (arguments.only.sorted(), arguments.without.sorted())
    }

    /// The arguments of the program, without those about servers.
    var arguments: [String] {
        var words = ["child", "--seed", "\(seed)", "--operations", "\(operations)", "--in-flight", "\(inFlight)"]
        for (name, value) in [
            ("cores", cores), ("descriptors", descriptors), ("memory", memory), ("threads", threads), ("leave", leave),
        ] {
            if let value { words += ["--\(name)", "\(value)"] }
        }
        words += ["--end", end]
        for name in only { words += ["--only", name] }
        for name in without { words += ["--without", name] }
        return words
    }
}

final class AbuseDriver: Sendable {
    private struct State: Sendable {
        var children = 0
        var started = 0
        var operations: UInt64 = 0
        var failures: [UInt64] = []
    }
    private let state = Lock(State())
    private let arguments: AbuseArguments
    private let seed: UInt64
    private let home: AbuseHome
    private let reports: URL

    init(_ arguments: AbuseArguments) throws {
        self.arguments = arguments
        seed = arguments.seed ?? UInt64.random(in: 0..<1_000_000)
        home = try AbuseHome(seed: seed)
        reports = arguments.reports.map { URL(filePath: $0) } ?? home.folder.appending(path: "reports")
        try FileManager.default.createDirectory(at: reports, withIntermediateDirectories: true)
    }

    /// Starts children until the time is over, or as many as were asked for. Returns the exit code.
    func run() async throws -> Int32 {
        home.servers.start()
        say("abuse: seed \(seed), reports in \(reports.path)")
        let begin = ContinuousClock.now
        let end = begin + .seconds(arguments.seconds)
        await withDiscardingTaskGroup { group in
            for lane in 0..<2 {
                group.addTask { [self] in
                    while let next = next(end, lane) { await runChild(ChildPlan(seed: next, arguments)) }
                }
            }
        }
        let seconds = (ContinuousClock.now - begin).components.seconds
        let (children, operations, failures) = state.withLock { ($0.children, $0.operations, $0.failures) }
        say(
            "abuse: \(children) children, \(operations) operations, \(seconds) seconds, \(failures.count) failures"
                + (failures.isEmpty ? "" : ": seeds \(failures.sorted().map(String.init).joined(separator: " "))"))
        if arguments.reports != nil || failures.isEmpty { home.remove() }
        return failures.isEmpty ? 0 : 1
    }

    /// The seed of the next child. Now and then the second lane leaves a child alone with the machine.
    private func next(_ end: ContinuousClock.Instant, _ lane: Int) -> UInt64? {
        state.withLock { state in
            guard ContinuousClock.now < end || arguments.children != nil else { return nil }
            if let children = arguments.children, state.started >= children { return nil }
            state.started += 1
            return seed &+ UInt64(state.started - 1)
        }
    }

    /// Runs one child with exactly the given options.
    func repeatOne() async throws -> Int32 {
        home.servers.start()
        await runChild(ChildPlan(repeating: arguments, seed: seed))
        say("abuse: reports in \(reports.path)")
        return state.withLock { $0.failures.isEmpty } ? 0 : 1
    }

    private func runChild(_ plan: ChildPlan) async {
        let begin = ContinuousClock.now
        let log = reports.appending(path: "\(plan.seed).txt")
        let output = reports.appending(path: "\(plan.seed).out")
        let counter = home.folder.appending(path: "\(plan.seed).count")
        try? Data(count: 8).write(to: counter)
        chmod(counter.path, 0o666)
        var prefix = plan.cores.map { ["/usr/bin/taskset", "-c", $0 == 1 ? "0" : "0-\($0 - 1)"] } ?? []
        if plan.threads != nil, geteuid() == 0 {
            let user = 61_000 + plan.seed % 4_000
            prefix += ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        }
        let place = home.newFolder("\(plan.seed)")
        let ending = await home.run(
            prefix, plan.arguments + ["--counter", counter.path], folder: place,
            files: .init(input: "/dev/null", output: output.path, errors: log.path), limit: .seconds(120),
            environment: ["SWIFT_BACKTRACE": "enable=yes,color=no,interactive=no,output-to=stderr,timeout=60s,limit=40"]
        )
        let operations = (try? Data(contentsOf: counter)).map { data in
            data.withUnsafeBytes { $0.count >= 8 ? $0.loadUnaligned(as: UInt64.self) : 0 }
        }
        try? FileManager.default.removeItem(at: place)
        try? FileManager.default.removeItem(at: counter)
        let seconds = (ContinuousClock.now - begin).components.seconds
        state.withLock {
            $0.children += 1
            $0.operations += operations ?? 0
        }
        let isForgiven = ending == .code(AbuseChild.endedByDispatch)
        guard ending != .code(0), !isForgiven else {
            try? FileManager.default.removeItem(at: log)
            try? FileManager.default.removeItem(at: output)
            return
        }
        state.withLock { $0.failures.append(plan.seed) }
        let lines = Self.summary(of: (try? String(contentsOf: log, encoding: .utf8)) ?? "")
        say(
            """
            abuse: FAILED, seed \(plan.seed): \(ending) after \(seconds) s and \(operations ?? 0) operations
              repeat it: \(CommandLine.arguments[0]) \(plan.arguments.joined(separator: " "))
              report: \(log.path)
            \(lines.map { "  | \($0)" }.joined(separator: "\n"))
            """)
    }
}

extension AbuseDriver {
    /// Returns the beginning of a report without the debugger's backtraces, and the thread that has crashed.
    private static func summary(of report: String) -> [Substring] {
        let noise = [
            "CoreFoundation: failed to dynamically link", "[New LWP", "libthread_db", "futex", "swift-runtime:",
        ]
        let lines = report.split(separator: "\n").filter { line in !noise.contains { line.contains($0) } }
        let beginning = lines.prefix { !$0.hasPrefix("Thread ") }.prefix(40)
        let crashed = lines.drop { !($0.hasPrefix("Thread ") && $0.hasSuffix("crashed:")) }.prefix {
            $0 != "Registers:"
        }
        return Array(beginning + crashed)
    }
}

/// The servers and the folder of a driver, and the start of its children.
final class AbuseHome: Sendable {
    enum Ending: Sendable, Equatable, CustomStringConvertible {
        case code(Int32)
        case signal(Int32)
        case hang
        case notStarted(String)

        var description: String {
            switch self {
            case .code(let code): "exit code \(code)"
            case .signal(let number): "signal \(number)"
            case .hang: "did not end"
            case .notStarted(let reason): "did not start: \(reason)"
            }
        }
    }

    let servers: AbuseServers
    let folder: URL
    private let authority: URL
    private let program: String

    init(seed: UInt64) throws {
        servers = try AbuseServers(seed: seed)
        folder = FileManager.default.temporaryDirectory.appending(path: "abuse-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority = folder.appending(path: "authority.pem")
        try Data(servers.authority).write(to: authority)
        program =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    }

    /// Serves until standard input ends, and prints the options of a child.
    func serve() async throws -> Int32 {
        servers.start()
        say("--servers \(servers.addresses) --authority \(authority.path)")
        while readLine() != nil {}
        remove()
        return 0
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// A folder that children under another user can write into.
    func newFolder(_ name: String) -> URL {
        let place = folder.appending(path: name)
        try? FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        chmod(place.path, 0o777)
        return place
    }

    /// Runs a child until it ends, or until the limit: then its backtraces are appended to its errors, and it is
    /// killed.
    func run(
        _ prefix: [String], _ arguments: [String], folder: URL, files: ChildProcess.Files, limit: Duration,
        environment: [String: String]
    ) async -> Ending {
        let words =
            prefix + [program] + arguments
            + ["--servers", servers.addresses.description, "--authority", authority.path]
        var all = environment
        all["SSL_CERT_FILE"] = authority.path
        for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME", "TMPDIR", "HOME"] { all[name] = folder.path }
        let child: ChildProcess
        do {
            child = try ChildProcess(words[0], Array(words.dropFirst()), environment: all, files: files)
        } catch { return .notStarted("\(error)") }
        let killed = Hung()
        let alarm = Task {
            try await Task.sleep(for: limit)
            killed.set()
            let text = Backtraces.of(child.identifier)
            if let errors = files.errors, let file = FileHandle(forWritingAtPath: errors) {
                file.seekToEndOfFile()
                file.write(Data("abuse: the child did not end\n\(text)".utf8))
            }
            child.send(SIGKILL)
        }
        let code = await child.wait()
        alarm.cancel()
        if killed.isSet { return .hang }
        // ChildProcess gives the number of a signal in place of an exit code. Children use none between 1 and 63.
        return (1..<64).contains(code) ? .signal(code) : .code(code)
    }

    private final class Hung: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }
}
