// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Checklist 137, 142, security 80: programs and agents that are killed at any moment.
@Suite(.timeLimit(.minutes(20)), .serialized) struct KillRows {
    static let program: String = {
        AgentRig.executable[..<(AgentRig.executable.lastIndex(of: "/") ?? AgentRig.executable.startIndex)]
            + "/BackgroundProgram"
    }()
    private static let isLong = ProcessInfo.processInfo.environment["URLLOADING_LONG"] != nil
    static let hasStrace = access("/usr/bin/strace", X_OK) == 0

    private func start(_ rig: AgentRig, _ arguments: String..., output: String? = nil) throws -> ChildProcess {
        try ChildProcess(
            Self.program, [rig.socket, "org.example.killed"] + arguments,
            files: .init(output: output, errors: rig.folder + "/errors"))
    }

    // MARK: The program

    @Test("A program that is killed in mid-transfer and never started again has its file all the same (checklist 137)")
    func programKilled() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try start(
                rig, "submit", origin.url("/film").absoluteString, place, output: rig.folder + "/said")
            try await origin.wait { $0.stalled == 1 }
            try await eventuallyProcess { try FileReader.text(rig.folder + "/said").hasPrefix("accepted") }
            program.send(SIGKILL)
            _ = await program.wait()
            origin.route("/film") { Film.answer($0) }
            // The stall ends with the agent, which goes on from its bytes.
            await rig.kill()
            origin.releaseStalls()
            try rig.start()
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
        }
    }

    @Test("A program that ends at once after it resumed a task has submitted it")
    func normalExit() async throws {
        try await SurvivalRows.with { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try start(rig, "task", origin.url("/film").absoluteString, place)
            #expect(await program.wait() == 0)
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
        }
    }

    @Test(
        "A program that is killed in each handler handles the event again until a handler has returned (checklist 142)"
    )
    func killedInHandlers() async throws {
        try await SurvivalRows.with { rig, origin in
            let labels = ["a", "b", "c", "d"]
            var configuration = Configuration.background("org.example.killed")
            configuration.background?.socket = rig.socket
            let session = Session(configuration)
            for label in labels {
                try await session.background.download(
                    Request(url: origin.url("/film")), options: BackgroundOptions(label: label))
            }
            try await eventuallyProcess { try await session.background.transfers.allSatisfy { $0.state == .finished } }
            await BackgroundSessionRows.end(session)
            let log = rig.folder + "/handled"
            // Handler 1 of the first run, handler 2 of the next: each run handles what the run before was killed in.
            var codes: [Int32] = []
            for number in [1, 1, 2, 2, 0] { codes.append(await (try start(rig, "handle", log, "\(number)")).wait()) }
            #expect(codes.last == 0, "\(codes) \((try? FileReader.text(rig.folder + "/errors")) ?? "")")
            let lines = try FileReader.text(log).split(separator: "\n").map {
                $0.split(separator: " ").map(String.init)
            }
            for label in labels {
                let own = lines.filter { $0.last == label }.map { $0[0] }
                #expect(own.count { $0 == "end" } == 1 && own.last == "end", "\(label): \(own)")
            }
            // Events come in one order, and never an earlier one after a later one.
            let begun = lines.filter { $0[0] == "begin" }.map { $0[1] }
            var order: [String] = []
            for label in begun where order.last != label { order.append(label) }
            #expect(order.count == labels.count && Set(order) == Set(labels), "\(begun)")
        }
    }

    @Test(
        "A program killed in a call of its delegate gets that event again, and no other twice (checklist 138, 140, 142)"
    )
    func killedInDelegateCalls() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { .ok("got \($0.bodyCount)") }
            var configuration = Configuration.background("org.example.killed")
            configuration.background?.socket = rig.socket
            configuration.storageDirectory = URL(filePath: rig.folder + "/store")
            let session = Session(configuration)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            for label in ["a", "b", "c"] {
                let options = BackgroundOptions(label: label)
                if label == "b" {
                    try await session.background.upload(
                        Request(url: origin.url("/put"), method: .put), fromFile: URL(filePath: source),
                        options: options)
                } else {
                    try await session.background.download(Request(url: origin.url("/film")), options: options)
                }
                try await eventuallyProcess {
                    try await session.background.transfers.allSatisfy { $0.state == .finished }
                }
            }
            await BackgroundSessionRows.end(session)
            let log = rig.folder + "/calls"
            // Each event has two calls. The third call of a run is the first one of the next event, or the last of all.
            for number in [1, 2, 3, 2, 3, 2, 3] {
                #expect(await (try start(rig, "classic", log, "\(number)")).wait() != 0)
            }
            let lines = try FileReader.text(log).split(separator: "\n").map(String.init)
            let expected = [
                "begin file a", "begin file a", "end file a", "begin complete a", "begin file a", "end file a",
                "begin complete a", "end complete a", "begin data b", "begin data b", "end data b",
                "begin complete b", "begin data b", "end data b", "begin complete b", "end complete b",
                "begin file c", "begin file c", "end file c", "begin complete c", "begin file c", "end file c",
                "begin complete c", "end complete c", "begin finished all",
            ]
            #expect(lines == expected)
            let next = Session(configuration)
            let left = try await next.background.transfers
            #expect(left.isEmpty)
            await BackgroundSessionRows.end(next)
        }
    }

    // MARK: The agent

    /// Runs the workload with an agent that `strace` hurts, and checks its results.
    /// - Returns: whether the injection struck; false beyond the last call of the workload.
    private func workload(_ injection: [String], kills: Bool, mask: String = "022") async throws -> Bool {
        try await Self.withOrigin { rig, origin -> Bool in
            let trace = rig.folder + "/trace"
            let shell = ["/bin/sh", "-c", "umask \(mask); exec \"$@\"", "sh"]
            try rig.start(under: shell + ["/usr/bin/strace", "-D", "-f", "-qq", "-o", trace] + injection)
            let struck = Atomic(false)
            // A killed agent is started again, unhurt.
            let watching = Task {
                _ = await rig.ended()
                guard !Task.isCancelled else { return }
                struck.store(true, ordering: .releasing)
                try rig.start()
            }
            try await Self.transferAll(rig, origin, "\(injection)")
            watching.cancel()
            let wasStruck =
                kills
                ? struck.load(ordering: .acquiring)
                : ((try? FileReader.text(trace)) ?? "").contains("(INJECTED)")
            try await Self.expectNothingLeft(rig, "\(injection)")
            return wasStruck
        }
    }

    private static func withOrigin<Result>(
        _ body: (AgentRig, HTTPTestServer) async throws -> Result
    ) async throws -> Result {
        let rig = AgentRig()
        return try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            origin.route("/put") { .ok("got \($0.bodyCount)") }
            return try await body(rig, origin)
        }
    }

    /// Downloads to a destination, downloads without one and uploads; each result is whole and is handled once.
    private static func transferAll(_ rig: AgentRig, _ origin: HTTPTestServer, _ harm: String) async throws {
        let session = BackgroundSessionRows.session(rig)
        let (place, source) = (rig.folder + "/film.bin", rig.folder + "/source.bin")
        try Data(Film.content).write(to: URL(filePath: source))
        let background = session.background
        try await Self.submitting {
            try await background.download(
                Request(url: origin.url("/film")), to: URL(filePath: place),
                options: BackgroundOptions(label: "placed"))
        }
        try await Self.submitting {
            try await background.download(
                Request(url: origin.url("/film")), options: BackgroundOptions(label: "kept"))
        }
        try await Self.submitting {
            try await background.upload(
                Request(url: origin.url("/put"), method: .put), fromFile: URL(filePath: source),
                options: BackgroundOptions(label: "sent"))
        }
        // A transfer that waits for room on the disk is told that there is some.
        let poking = Task {
            while !Task.isCancelled {
                for transfer in (try? await background.transfers) ?? [] {
                    if case .waiting = transfer.state { try? await transfer.resume() }
                }
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        defer { poking.cancel() }
        let handled = Lock<[String]>([])
        try await background.handleEvents { event in
            switch event.result {
            case .downloaded(let file):
                let isWhole = try file.content(upTo: 2_000_000).elementsEqual(Film.content)
                #expect(isWhole, "\(event.transfer.label) \(harm)")
            case .uploaded(let data, _):
                #expect(String(decoding: data, as: UTF8.self) == "got \(Film.content.count)")
            case .failed(let error): Issue.record("\(event.transfer.label): \(error) \(harm)")
            }
            let count = handled.withLock { handled in
                handled.append(event.transfer.label)
                return handled.count
            }
            if count == 3 { Task { session.finishTasksAndInvalidate() } }
        }
        #expect(handled.withLock { $0.sorted() } == ["kept", "placed", "sent"], "\(harm)")
        #expect(Film.of(place) == Film.content)
        await session.invalidated()
    }

    /// The acknowledged events do not come again, even to another session and another agent; no file is left.
    private static func expectNothingLeft(_ rig: AgentRig, _ harm: String) async throws {
        await rig.kill()
        try rig.start()
        let next = BackgroundSessionRows.session(rig)
        let left = try await next.background.transfers
        #expect(left.isEmpty, "\(left) \(harm)")
        await BackgroundSessionRows.end(next)
        await rig.kill(SIGTERM)
        #expect(rig.spool.isEmpty, "\(rig.spool) \(harm)")
    }

    /// A transfer that the agent cannot record is refused: the program submits it again.
    private static func submitting(_ submit: () async throws -> BackgroundTransfer) async throws {
        while true {
            do {
                _ = try await submit()
                return
            } catch let error as LoadError {
                guard error.reason == .backgroundAgentUnavailable else { throw error }
            }
        }
    }

    private static let calls = ["pwrite64", "fdatasync", "fsync", "rename"]

    @Test(
        "An agent that is killed at a write, a sync or a rename loses nothing and repeats nothing (security 80)",
        .enabled(if: KillRows.hasStrace), arguments: KillRows.calls)
    func agentKilled(_ call: String) async throws {
        // The long sweep goes to the last call; the short one takes some of each kind.
        let numbers = Self.isLong ? Array(1...400) : [1, 2, 4, 9]
        for number in numbers {
            let struck = try await workload(
                ["-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(number)"], kills: true)
            if !struck { return }
        }
    }

    @Test(
        "An agent that is killed at a rename under a umask that lets the group write loses nothing (security 80)",
        .enabled(if: KillRows.hasStrace))
    func agentKilledWithOpenMask() async throws {
        for number in 1...(Self.isLong ? 400 : 7) {
            let calls = "rename,renameat2"
            let injection = ["-e", "trace=\(calls)", "-e", "inject=\(calls):signal=KILL:when=\(number)"]
            if try await !workload(injection, kills: true, mask: "002") { return }
        }
    }

    /// Kills the agent and starts it again after each pause in milliseconds. Returns how often.
    private static func kill(_ rig: AgentRig, after pauses: [Int], until isOver: Watched<Bool>) async throws -> Int {
        var count = 0
        for pause in pauses {
            try await Task.sleep(for: .milliseconds(pause))
            guard !isOver.value else { break }
            await rig.kill()
            try rig.start()
            count += 1
        }
        return count
    }

    @Test("An agent that is killed at random moments loses nothing and repeats nothing (security 80)")
    func agentKilledAtRandom() async throws {
        var random = SeededGenerator.printed("KillRows.agentKilledAtRandom")
        var kills = 0
        while kills < (Self.isLong ? 200 : 10) {
            // The agent starts, connects and transfers in some 100 ms: some kills come before, some after its work.
            let count = Int.random(in: 1...6, using: &random)
            let pauses = (0..<count).map { _ in Int.random(in: 0...150, using: &random) }
            kills += try await Self.withOrigin { rig, origin in
                try rig.start()
                // Ended by a value, because a cancelled task would start an agent before the killed one has gone.
                let isOver = Watched(false)
                async let killed = Self.kill(rig, after: pauses, until: isOver)
                try await Self.transferAll(rig, origin, "pauses \(pauses)")
                isOver.change { $0 = true }
                let count = try await killed
                try await Self.expectNothingLeft(rig, "pauses \(pauses)")
                return count
            }
        }
    }

    @Test(
        "An agent whose writes fail for a while continues afterwards (security 80)",
        .enabled(if: KillRows.hasStrace),
        arguments: [
            ("pwrite64", "ENOSPC"), ("fdatasync", "EIO"), ("fsync", "EIO"), ("rename", "EIO"), ("accept4", "EMFILE"),
            ("fallocate", "ENOSPC"),
        ])
    func failingCalls(_ call: String, _ failure: String) async throws {
        for number in Self.isLong ? Array(1...60) : [2, 7] {
            let struck = try await workload(
                ["-e", "trace=\(call)", "-e", "inject=\(call):error=\(failure):when=\(number)"], kills: false)
            if !struck { return }
        }
    }
}
