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
    private let listener: SocketListener
    private let base: URL
    private let token = StopToken()
    private let task = Lock<Task<Void, Never>?>(nil)

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
        listener = try SocketListener(try configuration.address.socketAddress)
        state = Lock(HTTP2ServerState(configuration))
        let isClear = configuration.tls == nil
        let authority = configuration.address.authority(configuration.name, isClear: isClear, port: listener.address.port)
        guard let base = URL(string: "\(isClear ? "http" : "https")://\(authority)") else { throw TestOriginError(authority) }
        self.base = base
    }

    /// The port it listens on; 0 for a Unix socket.
    public var port: UInt16 { listener.address.port }

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
    public func start() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task { await self.run() }
        }
    }

    /// Ends every connection and returns when the last one is closed, with its scripts and handlers.
    public func stop() async {
        stopServing()
        await task.withLock { $0 }?.value
    }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns when all are closed. It can run once.
    @concurrent public func run() async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                while let socket = await nextConnection() {
                    guard let connection = open(socket) else { continue }
                    group.addTask { await connection.serve() }
                }
                // Handlers and scripts that wait for something of their own learn that nobody wants it any more.
                group.cancelAll()
            }
        } onCancel: {
            stopServing()
        }
        listener.close()
    }

    private func stopServing() {
        token.stop(.cancelled)
        for connection in state.withLock({ $0.stop() }) { connection.end() }
    }

    private func nextConnection() async -> SocketTransport? {
        while token.stopReason == nil {
            do throws(IOFailure) { return try await listener.accept(token) } catch {
                // Out of descriptors, or the peer was gone already: there will be others.
                try? await Poller.shared.sleep(until: Poller.now() + 5_000_000, token)
            }
        }
        return nil
    }

    private func open(_ socket: SocketTransport) -> HTTP2ServerConnection? {
        let connection = change { $0.open(socket, self) }
        if connection == nil { socket.close() }
        return connection
    }

    /// Changes the state and tells whoever waits for it to change.
    @discardableResult
    func change<R: Sendable>(_ change: (inout HTTP2ServerState) -> R) -> R {
        let (result, watchers) = state.withLock { state in (change(&state), state.watchers) }
        for watcher in watchers { watcher.wake() }
        return result
    }
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
    let server = try HTTP2TestServer(configuration)
    async let serving: Void = server.run()
    do {
        let result = try await use(server)
        await server.stop()
        await serving
        return result
    } catch {
        await server.stop()
        await serving
        throw error
    }
}
