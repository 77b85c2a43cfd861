// A proxy for tests, in the test's own process. What must live here: its life, from the listening socket to the
// last closed one. What a connection does is in `TestProxyConnection`.

import FoundationEssentials
import Synchronization
public import URLLoading
import URLLoadingIO

/// An HTTP or SOCKS proxy on a free port of this machine, which remembers what it was asked.
///
/// ```swift
/// try await withTestProxy(.init(.http)) { proxy in
///     var configuration = Configuration.ephemeral
///     configuration.proxies = .fixed([try proxy.address()])
///     let (data, _) = try await Session(configuration).data(from: URL(string: "http://origin.test:8080/")!)
///     assert(proxy.asked.first?.target == "http://origin.test:8080/")
/// }
/// ```
/// Every name leads to this machine, so that the names of origins need not exist: nobody but the proxy looks them
/// up. It forwards requests for `http` and opens tunnels; what passes through a tunnel it does not look into. It
/// misbehaves as its ``Configuration`` says.
public final class TestProxy: Sendable {
    /// How it was set up.
    public let configuration: Configuration
    let tls: TLSServerContext?
    /// For requests it forwards.
    let client: Session
    let life: ServerLife

    private struct State: Sendable {
        var asked: [Asked] = []
        var connections = 0
        var open: [Int: TestProxyConnection] = [:]
        var isStopped = false
    }
    private let state = Lock(State())

    /// Listens, but does not answer before ``start()`` or ``run()``.
    /// - Throws: an error that says why no socket or no TLS context was to be had.
    public init(_ configuration: Configuration = Configuration(.http)) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(.ipv4((127, 0, 0, 1), port: 0))
        var own = URLLoading.Configuration.ephemeral
        own.proxies = .none
        own.acceptEncoding = nil
        own.userAgent = nil
        own.maximumRedirects = 0
        own.resolver = ThisMachine()
        client = Session(own)
    }

    /// The port it listens on.
    public var port: UInt16 { life.port }

    /// As a session needs it: of its kind, at its address.
    /// - Parameters:
    ///   - kind: another than its own, or the version of SOCKS.
    ///   - host: its certificate's name, for a proxy with TLS; must lead to this machine.
    /// - Throws: ``LoadError/Reason/badProxy`` for credentials that the kind cannot carry.
    public func address(
        _ kind: Proxy.Kind? = nil, host: String? = nil, user: String? = nil, password: String? = nil
    ) throws(LoadError) -> Proxy {
        let own: Proxy.Kind = configuration.kind == .socks ? .socks5 : tls == nil ? .http : .https
        return try Proxy(
            kind ?? own, host: host ?? (tls == nil ? "127.0.0.1" : "localhost"), port: port, user: user,
            password: password)
    }

    /// What it was asked, in order.
    public var asked: [Asked] { state.withLock { $0.asked } }
    /// Connections accepted so far.
    public var connections: Int { state.withLock { $0.connections } }
    /// Connections open now.
    public var openConnections: Int { state.withLock { $0.open.count } }

    /// Returns when a connection waits at a ``Fault/stall(_:)``.
    /// - Parameter limit: of the wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilStalled(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await WaitLimit(limit, "a stalled connection of the proxy", file, line).poll {
            state.withLock { $0.open.values.contains(where: \.isStalled) }
        } seen: {
            shown
        }
    }

    /// Returns when no connection is open.
    /// - Parameter limit: of the wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilEmpty(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await WaitLimit(limit, "a proxy without connections", file, line).poll {
            openConnections == 0
        } seen: {
            shown
        }
    }

    /// For a wait that reached its limit; without the credentials in the requests.
    private var shown: String {
        "\(openConnections) of \(connections) connections open; requests: \(asked.map { "\($0.method) \($0.target)" }.shown())"
    }

    // MARK: Its life

    /// Serves in a task of its own until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection and returns when the last one is closed.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled. Returns when all connections are closed. It can
    /// run once.
    @concurrent public func run() async { await serveAll() }

    func closed(_ number: Int) { state.withLock { $0.open[number] = nil } }
    func record(_ asked: Asked) { state.withLock { $0.asked.append(asked) } }
}

extension TestProxy: ServingTests {
    func open(_ socket: SocketTransport) -> TestProxyConnection? {
        state.withLock { state in
            guard !state.isStopped else { return nil }
            state.connections += 1
            let connection = TestProxyConnection(socket, number: state.connections, self)
            state.open[state.connections] = connection
            return connection
        }
    }

    func stopOpening() -> [TestProxyConnection] {
        state.withLock { state in
            state.isStopped = true
            return Array(state.open.values)
        }
    }

    func hasEnded() async {
        client.invalidateAndCancel()
        await client.invalidated()
    }
}

/// Every name is this machine.
private struct ThisMachine: Resolver {
    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        [.ipv4((127, 0, 0, 1), port: 0)]
    }
}

/// Serves for the length of a scope: at its end, however it is left, every connection is closed before this returns.
///
/// ```swift
/// try await withTestProxy(.init(.socks)) { proxy in … }
/// ```
/// - Throws: what ``TestProxy/init(_:)`` or the closure throws.
nonisolated(nonsending) public func withTestProxy<R>(
    _ configuration: TestProxy.Configuration = .init(.http),
    _ use: nonisolated(nonsending) (TestProxy) async throws -> R
) async throws -> R {
    try await TestProxy(configuration).serving(use)
}
