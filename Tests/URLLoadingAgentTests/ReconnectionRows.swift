// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
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
