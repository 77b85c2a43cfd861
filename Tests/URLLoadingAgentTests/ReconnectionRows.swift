// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingCompatibility
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent
@testable import URLLoadingIO

/// Checklist 136, 142: agents that are gone or refuse, as a program meets them.
@Suite(.timeLimit(.minutes(2))) struct ReconnectionRows {
    @Test("The socket that a killed agent has left does not prevent the start of another agent")
    func deadSocket() async throws {
        let rig = AgentRig()
        var environment = ProgramEnvironment.all
        environment["XDG_RUNTIME_DIR"] = rig.folder + "/run"
        environment["XDG_STATE_HOME"] = rig.folder
        environment["URLLOADING_AGENT"] = AgentRig.executable
        environment["URLLOADING_AGENT_SOCKET"] = nil
        let socket = rig.folder + "/run/url-loading/agent.sock"
        try PrivateFolder.make(rig.folder + "/run/url-loading")
        // Bound and never listening: a closed listener lives on in a child that another test starts meanwhile.
        let left = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let bound = try SocketAddress.unix(socket).withSystemAddress { bind(left, $0, $1) }
        close(left)
        #expect(bound == 0 && LocalListener.isAbandoned(socket))
        let facts = AgentLauncher.facts(environment)
        #expect(LaunchPlan.make(facts) == .listening(socket: socket))
        let link = try await AgentLauncher.open(facts)
        #expect(link.welcome.manner == "spawned")
        // A second program finds the agent of the first.
        let other = try await AgentLauncher.open(facts)
        #expect(other.welcome.process == link.welcome.process)
        #expect(try await link.request(.handOver) == .done)
        for await _ in link.announcements {}
    }

    @Test(
        "A program that ignores the ends of its children, or reaps them all, starts one agent",
        arguments: ["ignored", "reaped"], [false, true])
    func lostChildren(_ manner: String, _ hasManager: Bool) async throws {
        let rig = AgentRig()
        let commands = rig.folder + "/bin"
        for folder in [commands, rig.folder + "/run/systemd"] { try PrivateFolder.make(folder) }
        // In place of the service manager, it returns when the agent listens.
        let command = """
            #!/bin/sh
            for socket; do :; done
            "$URLLOADING_AGENT" --socket "$socket" >/dev/null 2>&1 &
            while [ ! -S "$socket" ]; do sleep 0.05; done

            """
        // Copied by another process: a file that this one writes is open in the programs that other tests start
        // meanwhile, and is then no program (ETXTBSY).
        try Data(command.utf8).write(to: URL(filePath: rig.folder + "/systemd-run"))
        let copying = try ChildProcess("/bin/cp", [rig.folder + "/systemd-run", commands])
        #expect(await copying.wait() == 0)
        chmod(commands + "/systemd-run", 0o700)
        if hasManager {
            let manager = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            let bound = try SocketAddress.unix(rig.folder + "/run/systemd/private").withSystemAddress {
                bind(manager, $0, $1)
            }
            close(manager)
            #expect(bound == 0)
        }
        let program = try ChildProcess(
            KillRows.program, ["-", "org.example.children", "launch", manner, "-"],
            environment: [
                "XDG_RUNTIME_DIR": rig.folder + "/run", "XDG_STATE_HOME": rig.folder,
                "URLLOADING_AGENT": AgentRig.executable, "URLLOADING_AGENT_SOCKET": "",
                "PATH": "\(commands):\(ProgramEnvironment.all["PATH"] ?? "/usr/bin:/bin")",
            ], files: .init(errors: rig.folder + "/errors"))
        #expect(await program.wait() == 0, "\((try? FileReader.text(rig.folder + "/errors")) ?? "")")
        let spawned = rig.folder + "/url-loading/agent.sock"
        #expect(FileKind.isSocket(spawned) == !hasManager)
        let link = try await AgentLink.open(hasManager ? rig.folder + "/run/url-loading/agent.sock" : spawned)
        #expect(try await link.request(.handOver) == .done)
        for await _ in link.announcements {}
    }

    @Test(
        "An agent's socket never refuses a connection before the agent listens", .enabled(if: KillRows.hasStrace))
    func lateListener() async throws {
        let rig = AgentRig()
        try rig.start(under: [
            "/usr/bin/strace", "-D", "-f", "-qq", "-o", rig.folder + "/trace", "-e", "trace=listen", "-e",
            "inject=listen:delay_enter=300000",
        ])
        var isAbandoned = false
        while !isAbandoned, (try? LocalSocket.connect(to: rig.socket).close()) == nil {
            isAbandoned = LocalListener.isAbandoned(rig.socket)
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(!isAbandoned)
        #expect(try await rig.link().welcome.version == 1)
        await rig.kill(SIGTERM)
    }

    @Test("A program waits while the socket of a killed agent still takes connections, and finds the next agent")
    func lingeringSocket() async throws {
        let rig = AgentRig()
        let session = BackgroundSessionRows.session(rig)
        // The kernel accepts connections for a process that is between fork and exec, and ends them when its program
        // begins.
        let listener = try LocalListener(path: rig.socket)
        let token = StopToken()
        let survival = Task {
            defer { token.stop(.cancelled) }
            return try await session.background.survival
        }
        for _ in 0..<5 { (try? await listener.accept(token))?.close() }
        listener.close()
        try rig.start()
        _ = try await survival.value
        await BackgroundSessionRows.end(session)
        await rig.kill(SIGTERM)
    }

    /// What programs find at the socket of an agent that is being started again.
    enum Absence: String, CaseIterable, Sendable {
        /// No file: ENOENT.
        case missing
        /// The socket of the killed agent: ECONNREFUSED.
        case refusing
        /// A listener without room for another connection: EAGAIN.
        case full
    }

    @Test("New and adopted tasks wait for an agent that is being started again", arguments: Absence.allCases)
    func agentAway(_ absence: Absence) async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let first = BackgroundSessionRows.session(rig)
            try await first.background.download(
                Request(url: origin.url("/film")), options: BackgroundOptions(label: "adopted"))
            await BackgroundSessionRows.end(first)
            await rig.kill()
            origin.route("/film") { Film.answer($0) }
            var (listener, waiting): (LocalListener?, [LocalSocket]) = (nil, [])
            if absence != .refusing { unlink(rig.socket) }
            if absence == .full {
                listener = try LocalListener(path: rig.socket, backlog: 0)
                while let socket = try? LocalSocket.connect(to: rig.socket) { waiting.append(socket) }
            }
            let receiver = ClassicBackgroundRows.Receiver()
            let session = receiver.session(rig)
            let task = session.downloadTask(with: origin.url("/film"))
            task.taskDescription = "new"
            task.resume()
            async let tasks = session.allTasks
            // Some attempts to connect fail.
            try await Task.sleep(for: .milliseconds(100))
            listener?.close()
            for socket in waiting { socket.close() }
            try rig.start()
            #expect(Set(await tasks.map(\.taskDescription)).isSuperset(of: ["adopted"]))
            func ends(_ calls: [String]) -> Set<String> { Set(calls.filter { $0.hasPrefix("complete") }) }
            let calls = try await receiver.calls.wait { ends($0).count == 2 }
            #expect(ends(calls) == ["complete adopted", "complete new"])
            try await ClassicBackgroundRows.end(session, receiver)
        }
    }

    @Test("An agent that is stopping refuses no program: the program finds the next agent")
    func stopping() async throws {
        let rig = AgentRig()
        let service = try TransferService(try SQLiteJournal(folder: rig.state), folder: rig.state) { _ in }
        let listener = try LocalListener(path: rig.socket)
        let token = StopToken()
        let server = AgentServer(service, survival: "untilReboot", manner: "test") { _ in }
        let serving = Task { await server.serve(listener, token) }
        await service.start()
        await service.stop()
        let failure = await #expect(throws: AgentFailure.self) { try await rig.attach() }
        #expect(failure?.code == .unreachable, "\(failure as Any)")
        token.stop(.cancelled)
        await serving.value
    }

    @Test("A program that was started for its events is not started again before it has ended")
    func startedOnce() async throws {
        try await SurvivalRows.with { rig, origin in
            let (mark, end) = (rig.folder + "/started", rig.folder + "/end")
            let script = "echo started >>'\(mark)'; while ! [ -e '\(end)' ]; do sleep 0.05; done"
            let program = try await rig.attach { $0.waking = WakingOrder(arguments: ["/bin/sh", "-c", script]) }
            try await program.download(origin.url("/film"))
            _ = try await program.wait { $0.state == .finished }
            program.close()
            func starts() -> Int { ((try? FileReader.text(mark)) ?? "").split(separator: "\n").count }
            try await eventuallyProcess { starts() > 0 }
            // The next start is due after a second.
            try await Task.sleep(for: .milliseconds(1_500))
            #expect(starts() == 1)
            try Data().write(to: URL(filePath: end))
            try await eventuallyProcess { starts() > 1 }
        }
    }

    @Test("urlload bg sends the login of -u when the server asks for one, and not before")
    func login() async throws {
        try await SurvivalRows.with { rig, origin in
            ChallengeRows.guarded(origin)
            let place = rig.folder + "/film.bin"
            let command = try ChildProcess(
                AgentRig.executable.folder + "/urlload",
                ["bg", "get", "-u", "ada:secret", "-o", place, origin.url("/film").absoluteString],
                environment: ["URLLOADING_AGENT_SOCKET": rig.socket, "HOME": rig.folder],
                files: .init(output: rig.folder + "/said", errors: rig.folder + "/errors"))
            #expect(await command.wait() == 0, "\((try? FileReader.text(rig.folder + "/errors")) ?? "")")
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            #expect(origin.requests.first?.headers[.authorization] == nil)
            #expect(origin.requests.last?.headers[.authorization] == ChallengeRows.authorization)
        }
    }

    /// Answers every program that it is refused, as an agent does that cannot write its journal.
    private static func refuse(at path: String, _ token: StopToken) throws -> Task<Void, Never> {
        unlink(path)
        let listener = try LocalListener(path: path)
        return Task {
            while let socket = try? await listener.accept(token) {
                let channel = AgentChannel(socket)
                guard let first = (try? await channel.receive()) ?? nil else { continue }
                channel.send(.refused(AgentFailure(.journal, "the disk is full").refusal), id: first.id)
                channel.finish()
                while (try? await channel.receive()) ?? nil != nil {}
            }
        }
    }

    @Test("A handler of events ends with the error of a reconnection that failed, and the next handler gets the events")
    func refusedReconnection() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = BackgroundSessionRows.session(rig)
            let background = session.background
            let handling = Task { try await background.handleEvents { _ in } }
            try await background.download(Request(url: origin.url("/film")))
            try await eventuallyProcess { try await background.transfers.isEmpty }
            // The answer to this submission is sent after that to the acknowledgement: the handler waits then.
            var options = BackgroundOptions(label: "later")
            options.earliestBegin = Date(timeIntervalSinceNow: 3600)
            let later = try await background.download(Request(url: origin.url("/film")), options: options)
            await rig.kill()
            let token = StopToken()
            let refusing = try Self.refuse(at: rig.socket, token)
            let error = await #expect(throws: LoadError.self) { try await handling.value }
            #expect(error?.reason == .backgroundAgentUnavailable)
            #expect(error?.detail == "the disk is full")
            token.stop(.cancelled)
            await refusing.value
            unlink(rig.socket)
            try rig.start()
            try await eventuallyProcess { (try? await later.cancel()) != nil }
            let label = Lock("")
            try await background.handleEvents { event in
                label.withLock { $0 = event.transfer.label }
                Task { session.finishTasksAndInvalidate() }
            }
            #expect(label.withLock { $0 } == "later")
            await session.invalidated()
        }
    }
}
