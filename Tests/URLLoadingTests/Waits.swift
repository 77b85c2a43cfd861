// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The waits of a load, each ended once.
enum Waits {
    static let points: [HTTPTestServer.Fault.Point] = [
        .accept, .requestHead, .responseHead(after: 0), .responseHead(after: 9), .responseBody(after: 0),
        .responseBody(after: 10),
    ]

    /// All of them, each way to end them after the other, the kinds of waits beside each other.
    static func all() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for ending in Ending.allCases {
                group.addTask {
                    for verb in [Verb.data, .value, .body] {
                        for block in 1...ScriptedLoad.blocks { await ScriptedLoad.end(at: block, ending, verb) }
                    }
                    try await resolving(ending)
                    try await connecting(ending)
                    try await securing(ending)
                }
                group.addTask { for point in points { try await stalled(at: point, ending, .load) } }
                group.addTask { try await sendingALargeBody(ending) }
            }
            for ending in Ending.withoutIdle {
                group.addTask {
                    try await waitingForAConnection(ending)
                    for delivers in [false, true] { try await decidingTooLate(ending, delivers) }
                }
            }
            group.addTask {
                for block in 2...ScriptedLoad.blocks { await ScriptedLoad.endBefore(block, .task) }
                try await decidingWithCancellation()
                try await producingABody()
            }
            try await group.waitForAll()
        }
    }

    // MARK: Before there is a connection

    static func resolving(_ ending: Ending) async throws {
        let isAsked = Flag()
        let mayAnswer = Flag()
        var configuration = Configuration.patient
        configuration.networks.resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { _ in
            isAsked.raise()
            mayAnswer.waitBlocking()
            return .success([.ipv4((127, 0, 0, 1), port: 0)])
        }
        let session = Session(configuration)
        let load = RunningLoad(session, ending.applied(to: Request(url: URL(string: "http://slow.example/")!)))
        // A timeout may end the load before the decision is called.
        if !ending.isTimeout { try await isAsked.wait() }
        ending.apply(load, session)
        #expect(await load.reason == ending.reason)
        await expectEmpty(session)
        mayAnswer.raise()
    }

    static func connecting(_ ending: Ending) async throws {
        let host = try await FullHost()
        defer { host.close() }
        let session = Session(.patient)
        let url = URL(string: "http://127.0.0.1:\(host.port)/")!
        let load = RunningLoad(session, ending.applied(to: Request(url: url)))
        if !ending.isTimeout { try await session.eventuallyConnections { $0 != "empty" } }
        ending.apply(load, session)
        #expect(await load.reason == ending.reason)
        await expectEmpty(session)
    }

    /// Of the handshake, the origin reads nothing.
    static func securing(_ ending: Ending) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.inject(.init(.handshake, .stall))
            let session = Session(
                .patient.with { $0.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self)) })
            let load = RunningLoad(session, ending.applied(to: Request(url: origin.url())))
            try await apply(ending, load, session, origin)
            #expect(await load.reason == ending.reason)
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    static func waitingForAConnection(_ ending: Ending) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            let session = Session(.patient.with { $0.connections.maximumPerHost = 1 })
            let first = RunningLoad(session, Request(url: origin.url()))
            try await origin.wait { $0.stalled == 1 }
            let load = RunningLoad(session, ending.applied(to: Request(url: origin.url())))
            if !ending.isTimeout {
                try await session.eventuallyConnections { $0.hasSuffix("1 waiting") }
            }
            ending.apply(load, session)
            #expect(await load.reason == ending.reason)
            if ending != .invalidation {
                #expect(session.connectionsDescription.hasSuffix("0 connecting 1 leased 0 idle 0 waiting"))
            }
            await expectEmpty(session)
            #expect(await first.reason == .cancelled)
            try await origin.wait { $0.open == 0 }
            // An invalidation ends one load after the other: the place of the first may be handed on.
            #expect(origin.counts.accepted == 1 || ending == .invalidation)
        }
    }

    // MARK: On sockets

    static func stalled(at point: HTTPTestServer.Fault.Point, _ ending: Ending, _ verb: Verb) async throws {
        try await withHTTPTestServer { origin in
            let fault = HTTPTestServer.Fault(point, .stall)
            if point == .accept { origin.inject(fault) }
            origin.route("/", faults: [fault]) { _ in .ok(.repeated(count: 1000)) }
            let session = Session(.patient)
            let load = RunningLoad(session, ending.applied(to: Request(url: origin.url())), verb: verb)
            try await apply(ending, load, session, origin)
            #expect(await load.reason == ending.reason)
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    /// More than the buffers of two sockets hold.
    static func sendingALargeBody(_ ending: Ending) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.requestBody(after: 1), .stall)]) { _ in .ok("") }
            let session = Session(.patient)
            let request = Request(url: origin.url(), method: .post, body: .data(Data(count: 16 << 20)))
            let load = RunningLoad(session, ending.applied(to: request))
            try await apply(ending, load, session, origin)
            #expect(await load.reason == ending.reason)
            await expectEmpty(session)
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }

    /// A timeout may end the load before the origin has read anything.
    private static func apply(_ ending: Ending, _ load: RunningLoad, _ session: Session, _ origin: HTTPTestServer)
        async throws
    {
        if !ending.isTimeout { try await origin.wait { $0.stalled == 1 } }
        ending.apply(load, session)
    }

    // MARK: In the caller's own code

    static func decidingWithCancellation() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            let isAsked = Flag()
            var decisions = Decisions()
            decisions.redirect = Decision { _ in
                isAsked.raise()
                try await Task.sleep(for: .seconds(3600))
                return .follow
            }
            let session = Session(.patient)
            let load = RunningLoad(session, Request(url: origin.url()), decisions: decisions)
            try await isAsked.wait()
            load.task.cancel()
            #expect(await load.reason == .cancelled)
            await expectEmpty(session)
            #expect(origin.counts.requests == 1)
            try await origin.wait { $0.open == 0 }
        }
    }

    /// The pieces of a request's body come from the caller's own code, too.
    static func producingABody() async throws {
        try await withHTTPTestServer(answering: "") { origin in
            let session = Session(.patient)
            let isAsked = Flag()
            let body = RequestBody.stream { SilentBody(isAsked: isAsked) }
            let load = RunningLoad(session, Request(url: origin.url(), method: .post, body: body))
            try await isAsked.wait()
            load.task.cancel()
            #expect(await load.reason == .cancelled)
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }

    static func decidingTooLate(_ ending: Ending, _ delivers: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            let (isAsked, mayAnswer) = (Flag(), Flag())
            var decisions = Decisions()
            decisions.redirect = Decision { _ in
                isAsked.raise()
                await mayAnswer.waitIgnoringCancellation()
                return delivers ? .doNotFollow : .follow
            }
            let session = Session(.patient)
            let load = RunningLoad(session, ending.applied(to: Request(url: origin.url())), decisions: decisions)
            if !ending.isTimeout { try await isAsked.wait() }
            ending.apply(load, session)
            // A time-out comes when the load runs: it is over before there is an answer.
            if ending.isTimeout { _ = await load.reason }
            mayAnswer.raise()
            #expect(await load.reason == ending.reason)
            await expectEmpty(session)
            #expect(origin.requests.allSatisfy { $0.path == "/" })
            try await origin.wait { $0.open == 0 }
        }
    }
}

/// A body that has nothing to say, but listens to cancellation.
struct SilentBody: AsyncSequence, Sendable {
    let isAsked: Flag

    struct Iterator: AsyncIteratorProtocol {
        let isAsked: Flag
        mutating func next() async throws -> [UInt8]? {
            isAsked.raise()
            try await Task.sleep(for: .seconds(3600))
            return nil
        }
    }
    func makeAsyncIterator() -> Iterator { Iterator(isAsked: isAsked) }
}

/// Lets others go on, whatever the calling task's cancellation says.
func pause() async { await Task.detached { try? await Task.sleep(for: .microseconds(200)) }.value }
