// SPDX-License-Identifier: Apache-2.0

// The lifetime of a proxy in the test's own process. `TestProxyConnection` serves the connections.

import Synchronization
public import URLLoading
import URLLoadingIO

/// An HTTP or SOCKS proxy on a free local port, which records its requests.
///
/// ```swift
/// try await withTestProxy(.init(.http)) { proxy in
///     var configuration = Configuration.ephemeral
///     configuration.networks.proxyPolicy = .fixed([try proxy.address()])
///     let (data, _) = try await Session(configuration).data(from: URL(string: "http://origin.test:8080/")!)
///     assert(proxy.requests.first?.target == "http://origin.test:8080/")
/// }
/// ```
/// Every host name resolves to this machine, so the names of origins need not exist: only the proxy resolves them. It
/// forwards requests for `http` and opens tunnels, whose data it does not examine. Faults are set in its
/// ``Configuration``.
public final class TestProxy: Sendable {
    /// The configuration that the proxy was created with.
    public let configuration: Configuration
    let tls: TLSServerContext?
    /// The session for requests that it forwards.
    let client: Session
    let life: ServerLife

    struct State: ServerState {
        fileprivate(set) var requests: [RecordedRequest] = []
        fileprivate(set) var connections = ServerConnections<TestProxyConnection>()
        /// The number of connections that stall.
        var stalled = 0
        var watchers: [PollSlot] = []

        /// The state as shown by a wait that timed out, without the credentials in the requests.
        var shown: String {
            "\(connections.open.count) of \(connections.accepted) connections open; "
                + "requests: \(requests.map { "\($0.method) \($0.target)" }.shown())"
        }
    }
    private let state = Lock(State())

    /// Listens on a port; serves only once ``start()`` or ``run()`` is called.
    /// - Throws: an error if the socket or the TLS context could not be created.
    public init(_ configuration: Configuration = Configuration(.http)) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(.ipv4((127, 0, 0, 1), port: 0))
        var own = URLLoading.Configuration.ephemeral
        own.networks.proxyPolicy = .none
        // A proxy that forwards adds nothing of its own, stores nothing, and holds back no request.
        own.accept = nil
        own.acceptEncoding = nil
        own.userAgent = nil
        own.caching.usesMemoryStore = false
        own.cookies.storage = .none
        own.hsts.storage = .none
        own.connections.maximumPerHost = .max
        own.timeouts.idle = nil
        own.redirects.maximum = 0
        own.networks.resolver = LocalhostResolver()
        client = Session(own)
    }

    /// The port it listens on.
    public var port: UInt16 { life.port }

    /// Returns the proxy's address for a session's configuration.
    /// - Parameters:
    ///   - kind: another kind than the proxy's own, or a specific version of SOCKS.
    ///   - host: the name in its certificate, for a proxy with TLS; must resolve to this machine.
    /// - Throws: ``/URLLoading/LoadError/Reason/badProxy`` for credentials that the kind cannot carry.
    public func address(
        _ kind: Proxy.Kind? = nil, host: String? = nil, user: String? = nil, password: String? = nil
    ) throws(LoadError) -> Proxy {
        let own: Proxy.Kind = configuration.kind == .socks ? .socks5 : tls == nil ? .http : .https
        return try Proxy(
            kind ?? own, host: host ?? (tls == nil ? "127.0.0.1" : "localhost"), port: port, user: user,
            password: password)
    }

    /// The requests, in order.
    public var requests: [RecordedRequest] { state.withLock { $0.requests } }
    /// The number of connections accepted so far.
    public var connections: Int { state.withLock { $0.connections.accepted } }
    /// The number of connections open now.
    public var openConnections: Int { state.withLock { $0.connections.open.count } }

    /// Waits until a connection stalls at a ``Fault/stall(_:)``.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilStalled(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await wait(WaitLimit(limit, "a stalled connection of the proxy", file, line)) { $0.stalled > 0 ? () : nil }
    }

    /// Waits until no connection is open.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func untilEmpty(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await wait(WaitLimit(limit, "a proxy without connections", file, line)) {
            $0.connections.open.isEmpty ? () : nil
        }
    }

    // MARK: Lifetime

    /// Serves in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection; returns once all are closed.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled. Returns once all connections are closed. Can be
    /// called once.
    @concurrent public func run() async { await serveAll() }

    func closed(_ number: Int) { change { $0.connections.close(number) } }
    func record(_ request: RecordedRequest) { change { $0.requests.append(request) } }
}

extension TestProxy: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> TestProxyConnection? {
        change { $0.connections.open { TestProxyConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [TestProxyConnection] { state.withLock { $0.connections.stop() } }

    func hasEnded() async {
        client.invalidateAndCancel()
        await client.invalidated()
    }
}

/// Resolves every name to this machine.
private struct LocalhostResolver: Resolver {
    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        [.ipv4((127, 0, 0, 1), port: 0)]
    }
}

/// Runs a proxy for the duration of a closure; all connections are closed before this function returns or throws.
///
/// ```swift
/// try await withTestProxy(.init(.socks)) { proxy in … }
/// ```
/// - Throws: the errors of ``TestProxy/init(_:)`` and of the closure.
nonisolated(nonsending) public func withTestProxy<R>(
    _ configuration: TestProxy.Configuration = .init(.http),
    _ use: nonisolated(nonsending) (TestProxy) async throws -> R
) async throws -> R {
    try await TestProxy(configuration).serving(use)
}
