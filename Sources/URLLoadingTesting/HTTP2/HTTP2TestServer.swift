// SPDX-License-Identifier: Apache-2.0

// In this folder: a test server of HTTP/2 (23 files: frames, streams, faults)

// The lifetime of an HTTP/2 server in the test's own process. `HTTP2ServerConnection` serves connections; `HTTP2Routes`
// behaves correctly, scripts and `HTTP2Fault` do not.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An HTTP/2 server on a free local port, which behaves as well or as badly as a test requires.
///
/// ```swift
/// try await withHTTP2TestServer { server in
///     server.route("/hello") { request in .ok("Hello, \(request.method)") }
///     server.script(onConnection: 2) { peer in
///         try await peer.start()
///         let request = try await peer.expectRequest()
///         try await peer.goAway(last: 0, .enhanceYourCalm)
///     }
///     server.inject(.pingFlood, onConnection: 3)
///     …
///     #expect(server.failures.isEmpty)   // the client kept the rules
/// }
/// ```
///
/// Routes are those of ``HTTPTestServer``, answered with flow control and many streams at once. A script controls a
/// connection frame by frame (``HTTP2Peer``). An ``HTTP2Fault`` is a named script. The server supports HTTP/2 only: in
/// cleartext for clients with prior knowledge (RFC 9113 §3.3), or over TLS.
public final class HTTP2TestServer: Sendable {
    /// The configuration that the server was created with.
    public let configuration: Configuration
    let state: Lock<HTTP2ServerState>
    let secure: TLSServerContext?
    let life: ServerLife
    private let base: URL

    /// Listens on a port; serves only once ``start()`` or ``run()`` is called.
    ///
    /// ```swift
    /// let server = try HTTP2TestServer()
    /// server.start()
    /// print(server.url("/"))
    /// await server.stop()
    /// ```
    /// ``withHTTP2TestServer(_:_:)`` stops it also when your code throws.
    /// - Throws: an error if the socket or the TLS context could not be created.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        secure = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(try configuration.address.socketAddress)
        state = Lock(HTTP2ServerState(recordedRequests: configuration.recordedRequests))
        base = try configuration.address.baseURL(
            host: configuration.name, isSecure: configuration.tls != nil, port: life.port)
    }

    /// The port it listens on; 0 for a Unix socket.
    public var port: UInt16 { life.port }

    /// Returns the URL of a path on this server.
    ///
    /// ```swift
    /// server.url("/a?b=c")   // http://127.0.0.1:40123/a?b=c
    /// ```
    /// - Parameter path: a URL path with its query, beginning with `/`. An invalid path yields the URL of the server
    ///   itself.
    public func url(_ path: String = "/") -> URL { URL(string: base.absoluteString + path) ?? base }

    // MARK: Lifetime

    /// Serves in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection; returns once all are closed and their scripts and handlers have ended.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns once all are closed. Can be called once.
    @concurrent public func run() async { await serveAll() }
}

extension HTTP2TestServer: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout HTTP2ServerState) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> HTTP2ServerConnection? {
        change { $0.record.open { HTTP2ServerConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [HTTP2ServerConnection] { state.withLock { $0.record.stop() } }
}

/// Runs an HTTP/2 server for the duration of a closure; all connections are closed before this function returns or
/// throws.
///
/// ```swift
/// try await withHTTP2TestServer { server in
///     server.route("/") { _ in .ok("here") }
///     …
/// }
/// ```
/// - Throws: the errors of ``HTTP2TestServer/init(_:)`` and of the closure.
nonisolated(nonsending) public func withHTTP2TestServer<R>(
    _ configuration: HTTP2TestServer.Configuration = .init(),
    _ use: nonisolated(nonsending) (HTTP2TestServer) async throws -> R
) async throws -> R {
    try await HTTP2TestServer(configuration).serving(use)
}
