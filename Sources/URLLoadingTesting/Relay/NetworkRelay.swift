// SPDX-License-Identifier: Apache-2.0

// In this folder: a network between a client and a server

// The lifetime of a relay in the test's own process. `RelayConnection` serves connections, `RelayLinkState` schedules
// their bytes.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// A TCP relay on a free local port, which puts the conditions of a network between any client and any server.
///
/// ```swift
/// try await withHTTPTestServer { origin in
///     origin.route("/hello") { _ in .ok("hello") }
///     try await withNetworkRelay(to: origin.url(), .mobile) { relay in
///         let (data, _) = try await session.data(from: relay.url("/hello"))
///         assert(data.count == 5 && relay.connections[0].roundTrips == 2)   // the connect, and the request
///     }
/// }
/// ```
/// It stands in front of any server that listens on a port, with any protocol over TCP: an ``HTTPTestServer``, an
/// ``HTTP2TestServer``, a server of another process or machine. It passes bytes on as they are, so TLS is between the
/// client and the server. Data connections of FTP go past it, because the server names their ports.
///
/// Conditions can be changed while connections are open; see ``conditions``, ``fallSilent(_:)`` and ``cutAll(_:)``. The
/// end of a connection is passed on after the delay, too: a FIN as a FIN, a reset as a reset. A server that cannot be
/// reached resets the client's connection after a round trip.
public final class NetworkRelay: Sendable {
    let life: ServerLife
    let clock: LoopClock
    private let destination: Destination
    private let base: URL
    private let state: Lock<State>

    /// Listens on a port of 127.0.0.1; relays only once ``start()`` or ``run()`` is called.
    /// - Parameters:
    ///   - url: the server, by host and port, or the port of its scheme (http, https, ws, wss, ftp and ftps). The host
    ///     is resolved by the system for each connection.
    ///   - conditions: the conditions of all connections.
    ///   - clock: the clock of all delays and rates, and of ``NetworkConditions/Silence/from(_:)``; `nil` for the
    ///     system's.
    /// - Throws: ``HTTPTestServerError`` if the URL has no host or no port; an error if the socket could not be
    ///   created.
    public convenience init(
        to url: URL, _ conditions: NetworkConditions = .none, clock: ManualClock? = nil
    ) throws {
        guard let destination = Destination(url) else {
            throw HTTPTestServerError("a relay needs a URL with a host and a port: \(url.shown)")
        }
        try self.init(destination, base: url, conditions, clock)
    }

    /// Listens on a port of 127.0.0.1; relays to a port of the same address only once ``start()`` or ``run()`` is
    /// called. ``url(_:)-(String)`` has the scheme `http`.
    /// - Throws: an error if the socket could not be created.
    public convenience init(
        toPort port: UInt16, _ conditions: NetworkConditions = .none, clock: ManualClock? = nil
    ) throws {
        try self.init(Destination(host: "127.0.0.1", port: port), base: nil, conditions, clock)
    }

    private init(
        _ destination: Destination, base: URL?, _ conditions: NetworkConditions, _ clock: ManualClock?
    ) throws {
        self.destination = destination
        self.clock = LoopClock(clock?.time)
        life = try ServerLife(.ipv4((127, 0, 0, 1), port: 0))
        state = Lock(State(conditions))
        let own = URL(string: "http://127.0.0.1:\(life.port)")
        guard let base = base ?? own else { throw HTTPTestServerError("no URL for port \(life.port)") }
        self.base = base
    }

    /// The port it listens on.
    public var port: UInt16 { life.port }

    /// Returns the URL of a path on the server, through the relay.
    ///
    /// ```swift
    /// relay.url("/a?b=c")   // https://localhost:40123/a?b=c, for a relay to https://localhost:8443
    /// ```
    /// - Parameter path: a URL path with its query, beginning with `/`. An invalid path yields the URL of the server's
    ///   root.
    public func url(_ path: String = "/") -> URL {
        let root = relayed(base, path: "/") ?? base
        return URL(string: path, relativeTo: root)?.absoluteURL ?? root
    }

    /// Returns a URL of the server with the relay's port. The scheme, the userinfo, the path and the query are kept.
    /// The host `localhost` is kept too, because certificates name it; any other host becomes 127.0.0.1. To reach the
    /// relay by the server's name, lead the name to ``port`` by an address override of the session's configuration.
    public func url(_ url: URL) -> URL { relayed(url, path: nil) ?? url }

    private func relayed(_ url: URL, path: String?) -> URL? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        if parts.host?.lowercased() != "localhost" { parts.host = "127.0.0.1" }
        parts.port = Int(port)
        if let path { (parts.path, parts.query, parts.fragment) = (path, nil, nil) }
        return parts.url
    }

    // MARK: Conditions

    /// The conditions of all connections, those that are open and later ones. New conditions hold for everything that
    /// was not delivered yet. The seed, and the round trip of the connect, are those of the moment at which a
    /// connection was accepted.
    public var conditions: NetworkConditions {
        get { withState { $0.conditions } }
        set {
            change { $0.conditions = newValue }
            wakeConnections()
        }
    }

    /// Delivers nothing from now on in a direction, or in both (`nil`), of open and later connections. Sets
    /// ``NetworkConditions/Link/silence``; conditions without it end the silence.
    public func fallSilent(_ direction: NetworkConditions.Direction? = nil) {
        change { state in
            for silent in NetworkConditions.Direction.allCases where direction == nil || direction == silent {
                state.conditions[silent].silence = .from(.zero)
            }
        }
        wakeConnections()
    }

    /// Ends every open connection on both sides, without delay; what is queued is dropped. Later connections are
    /// relayed. ``wait(timeout:file:line:until:)`` waits for the effect.
    ///
    /// ```swift
    /// relay.cutAll(.reset)
    /// try await relay.wait { $0.open == 0 }
    /// ```
    /// After a ``NetworkConditions/Cut/finish``, a connection is open until both sides have closed it.
    public func cutAll(_ cut: NetworkConditions.Cut) {
        for connection in withState({ $0.openConnections }) { connection.cut(by: cut) }
    }

    private func wakeConnections() {
        for connection in withState({ $0.openConnections }) { connection.wake() }
    }

    // MARK: Lifetime

    /// Relays in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection; returns once all are closed.
    public func stop() async { await stopServing() }

    /// Relays until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns once all are closed. Can be called once.
    @concurrent public func run() async { await serveAll() }

    func connect(_ token: StopToken) async throws(IOFailure) -> SocketTransport {
        try await destination.connect(token)
    }

    /// The server.
    private struct Destination: Sendable {
        let host: String
        let port: UInt16

        init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

        init?(_ url: URL) {
            guard let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
            let usual: [String: Int] = ["http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990]
            guard let port = (url.port ?? usual[url.scheme?.lowercased() ?? ""]).flatMap(UInt16.init(exactly:))
            else { return nil }
            self.init(host: String(host.drop { $0 == "[" }.prefix { $0 != "]" }), port: port)
        }

        func connect(_ token: StopToken) async throws(IOFailure) -> SocketTransport {
            // Names of this machine need no lookup, which takes a thread.
            let here = SocketAddress.ipv4((127, 0, 0, 1), port: port)
            if host == "127.0.0.1" { return try await SocketTransport.connect(to: here, token) }
            let addresses =
                host == "localhost"
                ? [here, .ipv6([UInt8](repeating: 0, count: 15) + [1], port: port)]
                : try await SystemResolver.shared.addresses(of: host, token).map { $0.withPort(port) }
            return try await ConnectRace.connect(addresses, token)
        }
    }
}

extension NetworkRelay: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> RelayConnection? {
        let now = clock.now()
        return change { $0.open { RelayConnection(socket, number: $0, accepted: now, $1, self) } }
    }
    func stopOpening() -> [RelayConnection] { withState { $0.stop() } }
}

/// Runs a relay for the duration of a closure; all connections are closed before this function returns or throws.
///
/// ```swift
/// try await withNetworkRelay(to: origin.url(), .transatlantic) { relay in … }
/// ```
/// - Throws: the errors of ``NetworkRelay/init(to:_:clock:)`` and of the closure.
nonisolated(nonsending) public func withNetworkRelay<R>(
    to url: URL, _ conditions: NetworkConditions = .none, clock: ManualClock? = nil,
    _ use: nonisolated(nonsending) (NetworkRelay) async throws -> R
) async throws -> R {
    try await NetworkRelay(to: url, conditions, clock: clock).serving(use)
}

/// Runs a relay to a port of 127.0.0.1 for the duration of a closure; all connections are closed before this function
/// returns or throws.
///
/// ```swift
/// try await withNetworkRelay(toPort: 5432, .init(delay: .milliseconds(25))) { relay in … relay.port … }
/// ```
/// - Throws: the errors of ``NetworkRelay/init(toPort:_:clock:)`` and of the closure.
nonisolated(nonsending) public func withNetworkRelay<R>(
    toPort port: UInt16, _ conditions: NetworkConditions = .none, clock: ManualClock? = nil,
    _ use: nonisolated(nonsending) (NetworkRelay) async throws -> R
) async throws -> R {
    try await NetworkRelay(toPort: port, conditions, clock: clock).serving(use)
}
