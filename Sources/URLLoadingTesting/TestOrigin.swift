// An origin server for tests, in the test's own process. What must live here: its life, from the
// first listening socket to the last closed one. What a connection does is in `OriginConnection`.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An HTTP/1.1 server on a free port of this machine, whose every answer and fault is chosen by the test.
///
/// ```swift
/// try await withTestOrigin { origin in
///     origin.route("/hello") { request in .ok("Hello, \(request.method)") }
///     let (data, _) = try await session.data(from: origin.url("/hello"))
///     assert(origin.requests.count == 1)
/// }
/// ```
///
/// It keeps connections alive, answers `Expect: 100-continue`, and holds no more than its
/// ``Configuration`` says, however large the bodies. It refuses pipelining: a request that was sent
/// before the answer to the one before it is not read, and the connection closed. It speaks neither
/// HTTP/2 nor CONNECT.
public final class TestOrigin: Sendable {
    /// How it was set up.
    public let configuration: Configuration
    let state: Lock<OriginState>
    let tls: TLSServerContext?
    let life: ServerLife
    private let base: URL

    /// Listens, but does not answer before ``start()`` or ``run()``.
    ///
    /// ```swift
    /// let origin = try TestOrigin()
    /// origin.start()
    /// defer { await origin.stop() }
    /// ```
    /// - Throws: an error that says why no socket or no TLS context was to be had.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(try configuration.address.socketAddress)
        state = Lock(OriginState(recordedRequests: configuration.recordedRequests))
        let authority = configuration.authority(port: life.port)
        let scheme = configuration.tls == nil ? "http" : "https"
        guard let base = URL(string: "\(scheme)://\(authority)") else { throw TestOriginError(authority) }
        self.base = base
    }

    /// The port it listens on; 0 for a Unix socket.
    public var port: UInt16 { life.port }

    /// The URL of a path on this origin.
    ///
    /// ```swift
    /// origin.url("/a?b=c")   // http://127.0.0.1:40123/a?b=c
    /// ```
    /// - Parameter path: a path with its query, beginning with `/`, written as in a URL. What is none
    ///   gives the URL of the origin itself.
    public func url(_ path: String = "/") -> URL { URL(string: base.absoluteString + path) ?? base }

    // MARK: Its life

    /// Serves in a task of its own until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection and returns when the last one is closed, with its handlers.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of
    /// that task. Returns when all are closed. It can run once.
    @concurrent public func run() async { await serveAll() }

    func closed(_ connection: OriginConnection) {
        change { $0.close(connection.number) }
    }
}

extension TestOrigin: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout OriginState) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> OriginConnection? {
        change { $0.open { OriginConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [OriginConnection] { state.withLock { $0.stop() } }
}

/// Serves for the length of a scope: at its end, however it is left, every connection is closed
/// before this returns.
///
/// ```swift
/// try await withTestOrigin { origin in
///     origin.route("/") { _ in .ok("here") }
///     …
/// }
/// ```
/// - Throws: what ``TestOrigin/init(_:)`` or the closure throws.
nonisolated(nonsending) public func withTestOrigin<R>(
    _ configuration: TestOrigin.Configuration = .init(),
    _ use: nonisolated(nonsending) (TestOrigin) async throws -> R
) async throws -> R {
    try await TestOrigin(configuration).serving(use)
}

/// The origin cannot be set up as it was asked.
public struct TestOriginError: Error, Sendable, CustomStringConvertible {
    /// What was wrong.
    public let description: String
    init(_ description: String) { self.description = description }
}
