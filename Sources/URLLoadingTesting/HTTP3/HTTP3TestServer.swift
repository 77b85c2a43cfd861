// SPDX-License-Identifier: Apache-2.0

// In this folder: a test server of HTTP/3, in builds with the trait (15 files: frames, streams, routes)

// The lifetime of an HTTP/3 server in the test's own process. `HTTP3Listener` passes datagrams to connections;
// `HTTP3Routes` behaves correctly, scripts and `HTTP3Fault` do not.

#if HTTP3

public import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// An HTTP/3 server on a free UDP port of 127.0.0.1, which behaves as well or as badly as a test requires. Builds with
/// the trait `HTTP3` have it.
///
/// ```swift
/// let authority = try TestCertificateAuthority(commonName: "Test root")
/// try await withHTTP3TestServer(.init(try authority.issue())) { server in
///     server.route("/hello") { request in .ok("Hello, \(request.method)") }
///     server.script(onConnection: 2) { peer in
///         try await peer.start()
///         let request = try await peer.expectRequest()
///         peer.reset(request.stream, .requestRejected)
///     }
///     server.inject(.pingFlood, onConnection: 3)
///     …
///     #expect(server.failures.isEmpty)   // the client kept the rules
/// }
/// ```
///
/// Routes are those of ``HTTPTestServer``, answered with many streams at once. A script controls a connection frame by
/// frame (``HTTP3Peer``). An ``HTTP3Fault`` is a named script. For faults of the network, put a ``DatagramRelay`` in
/// front of ``port``; the server finds a client again whose address changes.
///
/// At most 1,000 connections are served at once. The server compresses no fields and permits no tables of compression;
/// it does not prove a client's address (Retry, RFC 9000 §8.1.2), and receives early data only if
/// ``acceptsEarlyData`` says so.
public final class HTTP3TestServer: Sendable {
    /// The configuration that the server was created with.
    public let configuration: Configuration
    let state: Lock<HTTP3ServerState>
    let secure: TLSServerContext
    let life: ServerLifetime<HTTP3Listener>
    private let base: URL

    /// Listens on a port; serves only once ``start()`` or ``run()`` is called.
    ///
    /// ```swift
    /// let server = try HTTP3TestServer(.init(try authority.issue()))
    /// server.start()
    /// print(server.url("/"))
    /// await server.stop()
    /// ```
    /// ``withHTTP3TestServer(_:_:)`` stops it also when your code throws.
    /// - Throws: an error if the socket or the TLS context could not be created.
    public init(_ configuration: Configuration) throws {
        self.configuration = configuration
        secure = try TLSServerContext(.init(configuration.tls))
        life = ServerLifetime(try HTTP3Listener(port: configuration.port))
        state = Lock(HTTP3ServerState(recordedRequests: configuration.recordedRequests))
        base = try HTTPTestServer.Configuration.Address.ipv4.baseURL(
            host: configuration.name, isSecure: true, port: life.port)
    }

    /// Whether new connections accept early data (RFC 9001 §4.6), and their clients may send some on later ones; false
    /// by default.
    ///
    /// ```swift
    /// server.acceptsEarlyData = true
    /// _ = try await session.data(from: server.url("/"))    // leaves a ticket that permits early data
    /// server.acceptsEarlyData = false                      // later connections resume, and reject it
    /// ```
    /// A ticket is accepted once. Requests are answered as they arrive, before the end of the handshake.
    public var acceptsEarlyData: Bool {
        get { state.withLock { $0.acceptsEarlyData } == true }
        set { state.withLock { $0.acceptsEarlyData = newValue } }
    }

    /// The UDP port of 127.0.0.1 it listens on.
    public var port: UInt16 { life.port }

    /// Returns the URL of a path on this server.
    ///
    /// ```swift
    /// server.url("/a?b=c")   // https://localhost:40123/a?b=c
    /// ```
    /// - Parameter path: a URL path with its query, beginning with `/`. An invalid path yields the URL of the server
    ///   itself.
    public func url(_ path: String = "/") -> URL { URL(string: base.absoluteString + path) ?? base }

    // MARK: Lifetime

    /// Serves in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Closes every connection with H3_NO_ERROR; returns once all are closed and their scripts and handlers have ended.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns once all are closed. Can be called once.
    @concurrent public func run() async { await serveAll() }

    var listener: HTTP3Listener { life.listener }
}

extension HTTP3TestServer: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout HTTP3ServerState) -> R) -> R { state.withLock { use(&$0) } }

    /// A datagram that begins no connection is ignored.
    func open(_ arrival: HTTP3Arrival) -> HTTP3ServerConnection? {
        guard let tls = try? QUICTLS(server: secure, acceptsEarlyData: state.withLock { $0.acceptsEarlyData }),
            let quic = try? arrival.datagram.withUnsafeBytes({ (first) throws(WireViolation) in
                try QUICCodec(server: tls, limits: configuration.limits, first: first, now: Poller.now())
            })
        else { return nil }
        let connection = change { state in
            state.record.open { HTTP3ServerConnection(HTTP3Peer(self, number: $0, arrival, quic, tls)) }
        }
        guard let connection else { return nil }
        listener.add(connection.peer)
        connection.peer.receive(arrival.datagram)
        return connection
    }

    func stopOpening() -> [HTTP3ServerConnection] { state.withLock { $0.record.stop() } }
}

/// Runs an HTTP/3 server for the duration of a closure; all connections are closed before this function returns or
/// throws.
///
/// ```swift
/// try await withHTTP3TestServer(.init(try authority.issue())) { server in
///     server.route("/") { _ in .ok("here") }
///     …
/// }
/// ```
/// - Throws: the errors of ``HTTP3TestServer/init(_:)`` and of the closure.
nonisolated(nonsending) public func withHTTP3TestServer<R>(
    _ configuration: HTTP3TestServer.Configuration,
    _ use: nonisolated(nonsending) (HTTP3TestServer) async throws -> R
) async throws -> R {
    try await HTTP3TestServer(configuration).serving(use)
}

#endif
