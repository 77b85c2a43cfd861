// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The connect timeout: its scope, and what follows it.
@Suite(.timeLimit(.minutes(4)))
struct ConnectTimeoutRows {
    private static let limit = UnansweredConnection.limit

    /// Expects the connect timeout of a connection, while it has no answer.
    @discardableResult
    private func expectTimeout(_ connection: UnansweredConnection) async throws -> LoadError? {
        try await expectConnectTimeout(
            connection.clock, connection.session, connection.phase, when: connection.isUnderWay
        ) { _ = try await $0.data(from: connection.url) }
    }

    @Test("an attempt that the system or the protocol ends before the connect timeout does not say its length")
    func endedBefore() async throws {
        let load = LoadHandle(idle: nil, resource: nil, connect: .seconds(200))
        let error = await #expect(throws: LoadError.self) {
            try await load.connecting { () async throws(LoadError) -> Int in
                throw LoadError(.connectTimeout, phase: .connecting, party: .remote, detail: "no answer over QUIC")
            }
        }
        #expect(error?.reason == .connectTimeout && error?.detail == "no answer over QUIC")
    }

    // MARK: Covered steps

    @Test("a name resolution without an answer ends with the connect timeout")
    func resolving() async throws {
        let clock = ManualClock()
        let isAsked = Flag()
        let mayAnswer = Flag()
        let session = Session(
            UnansweredConnection.configuration(clock) {
                $0.networks.resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { _ in
                    isAsked.raise()
                    mayAnswer.waitBlocking()
                    return .success([.ipv4((127, 0, 0, 1), port: 0)])
                }
            })
        let address = try url("http://slow.example/")
        let error = try await expectConnectTimeout(clock, session, .resolving, when: { try await isAsked.wait() }) {
            _ = try await $0.data(from: address)
        }
        mayAnswer.raise()
        #expect(error?.url == address)
        #expect(
            error.map { "\($0)" }
                == "connectTimeout (resolving, http://slow.example/): no connection within 5.0 seconds")
    }

    @Test("a resolver of the caller without an answer ends with the connect timeout")
    func resolvingByTheCaller() async throws {
        let clock = ManualClock()
        let isAsked = Latch()
        let session = Session(
            UnansweredConnection.configuration(clock) {
                $0.networks.nameResolver = NameResolver { _ in
                    isAsked.open()
                    try await Task.sleep(for: .seconds(3600))
                    return []
                }
            })
        let address = try url("http://slow.example/")
        let loading = Task {
            await failure(.connectTimeout, .system, .resolving) { try await session.data(from: address) }
        }
        await isAsked.wait()
        clock.advance(by: Self.limit)
        #expect(await loading.value?.url?.host() == "slow.example")
        await expectEmpty(session)
    }

    @Test("one or several addresses without an answer end with the connect timeout", arguments: [false, true])
    func connecting(_ hasTwoAddresses: Bool) async throws {
        try await UnansweredConnection.connecting(twoAddresses: hasTwoAddresses) { try await expectTimeout($0) }
    }

    enum Client: CaseIterable, Sendable {
        case http1, http2, webSocket, stream, ftps

        func connect(_ session: Session, _ port: UInt16) async throws {
            switch self {
            case .http1, .http2: _ = try await session.data(from: try url("https://127.0.0.1:\(port)/"))
            case .ftps: _ = try await session.data(from: try url("ftps://127.0.0.1:\(port)/a"))
            case .webSocket:
                let socket = session.webSocketTask(try url("wss://127.0.0.1:\(port)/")).resumed()
                _ = try await socket.opened
            case .stream:
                let stream = session.streamTask(host: "127.0.0.1", port: Int(port), secure: true).resumed()
                if let error = await stream.ended() { throw error }
            }
        }
    }

    @Test("a TLS handshake without an answer ends with the connect timeout", arguments: Client.allCases)
    func securing(_ client: Client) async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(
            UnansweredConnection.configuration(clock) {
                if client == .http2 { $0.connections.httpVersions = .http2PriorKnowledge }
            })
        let port = host.port
        let error = try await expectConnectTimeout(
            clock, session, .securing, when: { try await host.acceptFirstByte() }
        ) {
            try await client.connect($0, port)
        }
        #expect(error?.url?.port == Int(host.port))
    }

    @Test("TLS started later on a stream ends with the connect timeout")
    func startingTLS() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock))
        let stream = session.streamTask(host: "127.0.0.1", port: Int(host.port)).resumed()
        try await host.connects()
        try await stream.connected()
        let securing = Task {
            await failure(.connectTimeout, .system, .securing) { try await stream.startSecureConnection() }
        }
        try await clock.untilWaiting()
        clock.advance(by: Self.limit)
        #expect(await securing.value?.url == URL(string: "tcp://127.0.0.1:\(host.port)"))
        #expect(await stream.ended()?.reason == .connectTimeout)
        await expectEmpty(session)
    }

    @Test(
        "a tunnel that a proxy does not open ends with the connect timeout, which names the proxy",
        arguments: [
            TestProxy.Configuration.Kind.http, .socks,
        ])
    func tunnelling(_ kind: TestProxy.Configuration.Kind) async throws {
        try await UnansweredConnection.tunnelling(kind) { tunnel, proxy in
            let error = try await expectTimeout(tunnel)
            #expect(error?.proxyFailure?.proxy == proxy)
            #expect(error?.detail?.hasSuffix("no connection within 5.0 seconds") == true)
        }
    }

    @Test("all stages of connecting share one limit")
    func stagesTogether() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        let isAsked = Latch()
        let mayAnswer = Latch()
        defer { host.close() }
        let session = Session(
            UnansweredConnection.configuration(clock) { $0.networks.nameResolver = .waiting(isAsked, mayAnswer) })
        let address = try url("https://slow.example:\(host.port)/")
        try await expectConnectTimeout(
            clock, session, .securing, at: .seconds(2),
            when: {
                await isAsked.wait()
                clock.advance(by: .seconds(3))
                mayAnswer.open()
                try await host.acceptFirstByte()
            }
        ) { session in _ = try await session.data(from: address) }
    }

    @Test("a request's own connect timeout takes precedence over that of its session")
    func ofARequest() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock) { $0.timeouts.connect = nil })
        var request = Request(url: try url("https://127.0.0.1:\(host.port)/"))
        request.connectTimeout = .seconds(2)
        let asked = request
        try await expectConnectTimeout(
            clock, session, .securing, at: .seconds(2), when: { try await host.acceptFirstByte() }
        ) { _ = try await $0.data(for: asked) }
    }

    @Test(
        "an FTP server that is silent before the login ends with the connect timeout", arguments: ["", "USER", "PASS"])
    func ftpLogin(_ verb: String) async throws {
        try await UnansweredConnection.ftpLogin(verb) { try await expectTimeout($0) }
    }

    @Test("an FTP data connection that cannot be opened ends with the connect timeout")
    func ftpData() async throws {
        try await UnansweredConnection.ftpData { try await expectTimeout($0) }
    }

    // MARK: Steps that are not covered

    @Test("without a connect timeout the idle timeout applies while connecting")
    func byDefault() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock) { $0.timeouts.connect = nil })
        #expect(Configuration.default.timeouts.connect == nil)
        let loading = RunningLoad(session, Request(url: try url("https://127.0.0.1:\(host.port)/")))
        try await host.acceptFirstByte()
        try await clock.untilWaiting()
        clock.advance(by: .seconds(60))
        #expect(await loading.reason == .idleTimeout)
        await expectEmpty(session)
    }

    @Test("the connect timeout does not apply while a load waits for a pooled connection, or for its response")
    func waitingForAConnection() async throws {
        let serverClock = ManualClock()
        try await withHTTPTestServer(.init(clock: serverClock)) { origin in
            origin.route("/", faults: [.init(.requestHead, .delay(.seconds(1)))]) { _ in .ok("here") }
            let clock = ManualClock()
            let session = Session(UnansweredConnection.configuration(clock) { $0.connections.maximumPerHost = 1 })
            let first = RunningLoad(session, Request(url: origin.url()))
            try await serverClock.untilSleeping()
            let second = RunningLoad(session, Request(url: origin.url()))
            try await session.eventuallyConnections { $0.hasSuffix("1 waiting") }
            try await clock.untilWaiting()
            clock.advance(by: .seconds(50))
            for load in [first, second] {
                try await serverClock.untilSleeping()
                serverClock.advance(by: .seconds(1))
                let count = try await load.task.value.get()
                #expect(count == 4)
            }
            await expectEmpty(session)
        }
    }

    @Test("the duration of a decision about the server does not count")
    func deciding() async throws {
        try await withSecureOrigin { origin, base in
            origin.route("/") { _ in .ok("here") }
            let clock = ManualClock()
            let isAsked = Latch()
            let mayAnswer = Latch()
            var configuration = base
            configuration.use(clock)
            configuration.timeouts.connect = Self.limit
            let session = Session(configuration)
            var decisions = Decisions()
            decisions.challenge = Decision { _ in
                isAsked.open()
                await mayAnswer.wait()
                return .performDefaultHandling
            }
            let loading = RunningLoad(session, Request(url: origin.url()), decisions: decisions)
            await isAsked.wait()
            clock.advance(by: .seconds(600))
            mayAnswer.open()
            let count = try await loading.task.value.get()
            #expect(count == 4)
            await expectEmpty(session)
        }
    }

    @Test("a load that waited for another load's attempt has the whole limit for its own")
    func waitingForAnAttempt() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock))
        let address = try url("https://127.0.0.1:\(host.port)/")
        let route = Route(origin: try Target(address.absoluteString).origin)
        let first = RunningLoad(session, Request(url: address))
        try await host.acceptFirstByte()
        let second = RunningLoad(session, Request(url: address))
        // The pool notifies the waiting load alone.
        try await eventually(session.core.pool.withSharing { $0.waiting(route) }) { $0 > 0 }
        try await clock.untilWaiting()
        clock.advance(by: Self.limit)
        #expect(await first.reason == .connectTimeout)
        try await host.acceptFirstByte()
        try await clock.untilWaiting()
        clock.advance(by: Self.limit - .nanoseconds(1))
        try await clock.untilWaiting()
        clock.advance(by: .nanoseconds(1))
        #expect(await second.reason == .connectTimeout)
        await expectEmpty(session)
    }

    // MARK: After the timeout

    @Test("a retry policy treats the connect timeout as transient, and each attempt has the whole limit")
    func retrying() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let host = try SilentHost()
            defer { host.close() }
            let clock = ManualClock()
            let dialled = Lock(0)
            let recorder = EventRecorder()
            let session = Session(
                UnansweredConnection.configuration(clock) {
                    $0.observers = [recorder]
                    $0.networkMonitor = SwitchedNetwork(isUp: true).monitor
                    var policy = RetryPolicy()
                    policy.backoff = .constant(.seconds(7))
                    $0.retries.policy = policy
                    let silent = host.port
                    let well = UInt16(origin.port)
                    $0.dial = { (_, token) async throws(IOFailure) -> any Transport in
                        let isFirst = dialled.withLock { count in
                            count += 1
                            return count == 1
                        }
                        let place = SocketAddress.ipv4((127, 0, 0, 1), port: isFirst ? silent : well)
                        let transport = try await SocketTransport.connect(to: place, token)
                        guard isFirst else { return transport }
                        token.attach(transport.slot)
                        defer {
                            token.detach(transport.slot)
                            transport.close()
                        }
                        while true {
                            try token.check(.connect)
                            await Poller.shared.park(transport.slot, .read, token)
                        }
                    }
                })
            let loading = RunningLoad(session, Request(url: origin.url()))
            try await host.connects()
            try await clock.untilWaiting()
            clock.advance(by: Self.limit)
            try await recorder.wait(for: .retrying, count: 1)
            try await clock.untilSleeping()
            clock.advance(by: .seconds(7))
            let answered = try await loading.task.value.get()
            #expect(answered == 4)
            await expectEmpty(session)
        }
    }

    @Test("after the connect timeout of a proxy the next route is tried")
    func anotherWay() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.socks, fault: .stall(.greeting))) { proxy in
                let clock = ManualClock()
                let way = try proxy.address()
                let session = Session(
                    UnansweredConnection.configuration(clock) {
                        $0.networks.proxyPolicy = .custom { _ in [[way], .direct] }
                    })
                let loading = RunningLoad(session, Request(url: origin.url()))
                try await proxy.untilStalled()
                try await clock.untilWaiting()
                clock.advance(by: Self.limit)
                let answered = try await loading.task.value.get()
                #expect(answered == 4)
                await expectEmpty(session)
            }
        }
    }

    /// Answers requests to unreachable hosts itself.
    private struct Fallback: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            do throws(LoadError) {
                return try await client.next.load(request)
            } catch  where error.reason == .connectTimeout {
                return .response(Response(url: request.url), data: Data("kept".utf8))
            }
        }
    }

    @Test("a handler that forwards to the network can answer after the connect timeout")
    func handling() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        let session = Session(UnansweredConnection.configuration(clock) { $0.handlers = [Fallback()] })
        let address = try url("https://127.0.0.1:\(host.port)/")
        let loading = Task { try await session.text(address) }
        try await host.acceptFirstByte()
        try await clock.untilWaiting()
        clock.advance(by: Self.limit)
        let text = try await loading.value
        #expect(text == "kept")
        await expectEmpty(session)
    }

    /// Requests a host that never answers and a fast server at the same time.
    private struct Both: ProtocolHandler {
        let server: URL
        /// Open once the attempt to the fast server has begun: then the other one begins.
        let isServerAsked: Latch
        let answered: @Sendable () -> Void
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            async let silent = {
                await isServerAsked.wait()
                return try await client.next.load(request)
            }()
            let quick = try await client.next.load(Request(url: server)).body.collect(upTo: 100)
            answered()
            do {
                return try await silent
            } catch let error as LoadError where error.reason == .connectTimeout {
                return .response(Response(url: request.url), data: quick)
            }
        }
    }

    @Test("two simultaneous requests of a handler have a connect timeout each")
    func twoAtOnce() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        try await withHTTPTestServer(answering: "quick") { origin in
            let (answers, answered) = AsyncStream<Void>.makeStream()
            let (isAsked, mayAnswer) = (Latch(), Latch())
            let server = try url("http://quick.example:\(origin.port)/")
            let both = Both(server: server, isServerAsked: isAsked) { answered.yield() }
            let session = Session(
                UnansweredConnection.configuration(clock) {
                    $0.handlers = [both]
                    $0.networks.nameResolver = .waiting(isAsked, mayAnswer)
                })
            let address = try url("https://127.0.0.1:\(host.port)/")
            let loading = Task { try await session.text(address) }
            try await host.acceptFirstByte()
            mayAnswer.open()
            for await _ in answers { break }
            // The fast server's attempt, which began first, has ended; the other one keeps its own limit.
            clock.advance(by: Self.limit)
            let text = try await loading.value
            #expect(text == "quick")
            await expectEmpty(session)
        }
    }

    @Test("a cancelled load does not wait for its connect timeout, and the timer retains no load")
    func cancelling() async throws {
        let clock = ManualClock()
        let host = try SilentHost()
        defer { host.close() }
        weak var load: LoadHandle?
        do {
            let session = Session(UnansweredConnection.configuration(clock))
            let task = session.dataTask(from: try url("https://127.0.0.1:\(host.port)/"))
            load = task.load.context.handle
            task.resume()
            try await host.acceptFirstByte()
            task.cancel()
            await expectFailure(.cancelled) { try await task.value }
            await expectEmpty(session)
        }
        try await eventually(load == nil) { $0 }
        clock.advance(by: .seconds(3600))
    }
}
