// A server of HTTP/2 for tests, in the test's own process. What must live here: its life. What a connection does is
// in `HTTP2ServerConnection`; good behaviour in `HTTP2Routes`, bad behaviour in scripts and `HTTP2Fault`.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An HTTP/2 server on a free port of this machine, which behaves as well or as badly as a test wants.
///
/// ```swift
/// try await withHTTP2TestServer { server in
///     server.route("/hello") { request in .ok("Hello, \(request.method)") }
///     server.script(onConnection: 2) { peer in
///         try await peer.start()
///         let request = try await peer.expectRequest()
///         try await peer.goAway(last: 0, .enhanceYourCalm)
///     }
///     server.misbehave(.pingFlood, onConnection: 3)
///     …
///     #expect(server.complaints.isEmpty)   // the client kept the rules
/// }
/// ```
///
/// Routes are those of ``TestOrigin``, answered with flow control, many streams at once. A script has a connection for
/// itself, frame by frame (``HTTP2Peer``). A ``HTTP2Fault`` is a script with a name. It speaks HTTP/2 alone: in the
/// clear to clients with prior knowledge (RFC 9113 3.3), or over TLS.
public final class HTTP2TestServer: Sendable {
    /// How it was set up.
    public let configuration: Configuration
    let state: Lock<HTTP2ServerState>
    let secure: TLSServerContext?
    let life: ServerLife
    private let base: URL

    /// Listens, but does not answer before ``start()`` or ``run()``.
    ///
    /// ```swift
    /// let server = try HTTP2TestServer()
    /// server.start()
    /// defer { await server.stop() }
    /// ```
    /// - Throws: an error that says why no socket or no TLS context was to be had.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        secure = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(try configuration.address.socketAddress)
        state = Lock(HTTP2ServerState(configuration))
        let isClear = configuration.tls == nil
        let authority = configuration.address.authority(configuration.name, isClear: isClear, port: life.port)
        guard let base = URL(string: "\(isClear ? "http" : "https")://\(authority)") else {
            throw TestOriginError(authority)
        }
        self.base = base
    }

    /// The port it listens on; 0 for a Unix socket.
    public var port: UInt16 { life.port }

    /// The URL of a path on this server.
    ///
    /// ```swift
    /// server.url("/a?b=c")   // http://127.0.0.1:40123/a?b=c
    /// ```
    /// - Parameter path: a path with its query, beginning with `/`, written as in a URL. What is none gives the URL of
    ///   the server itself.
    public func url(_ path: String = "/") -> URL { URL(string: base.absoluteString + path) ?? base }

    // MARK: Its life

    /// Serves in a task of its own until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection and returns when the last one is closed, with its scripts and handlers.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns when all are closed. It can run once.
    @concurrent public func run() async { await serveAll() }
}

extension HTTP2TestServer: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout HTTP2ServerState) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> HTTP2ServerConnection? {
        change { $0.open { HTTP2ServerConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [HTTP2ServerConnection] { state.withLock { $0.stop() } }
}

/// Serves for the length of a scope: at its end, however it is left, every connection is closed before this returns.
///
/// ```swift
/// try await withHTTP2TestServer { server in
///     server.route("/") { _ in .ok("here") }
///     …
/// }
/// ```
/// - Throws: what ``HTTP2TestServer/init(_:)`` or the closure throws.
nonisolated(nonsending) public func withHTTP2TestServer<R>(
    _ configuration: HTTP2TestServer.Configuration = .init(),
    _ use: nonisolated(nonsending) (HTTP2TestServer) async throws -> R
) async throws -> R {
    try await HTTP2TestServer(configuration).serving(use)
}
