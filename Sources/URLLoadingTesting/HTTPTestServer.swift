// SPDX-License-Identifier: Apache-2.0

// In this folder: test servers, clocks, certificates and recorders (24 files: the public types)

// The lifetime of an origin server in the test's own process. `OriginConnection` serves the connections.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An HTTP/1.1 server on a free local port, whose responses and faults are chosen by the test.
///
/// ```swift
/// try await withHTTPTestServer { origin in
///     origin.route("/hello") { request in .ok("Hello, \(request.method)") }
///     let (data, _) = try await session.data(from: origin.url("/hello"))
///     assert(origin.requests.count == 1)
/// }
/// ```
///
/// It keeps connections alive, answers `Expect: 100-continue`, and keeps no more in memory than its ``Configuration``
/// permits, however large the bodies. Pipelining is refused: a request sent before the previous response is not read,
/// and the connection is closed. HTTP/2 and CONNECT are not supported.
public final class HTTPTestServer: Sendable {
    /// The configuration that the origin was created with.
    public let configuration: Configuration
    let state: Lock<OriginState>
    let tls: TLSServerContext?
    let life: ServerLife
    private let base: URL

    /// Listens on a port; serves only once ``start()`` or ``run()`` is called.
    ///
    /// ```swift
    /// let origin = try HTTPTestServer()
    /// origin.start()
    /// print(origin.url())
    /// await origin.stop()
    /// ```
    /// ``withHTTPTestServer(_:_:)`` stops it also when your code throws.
    /// - Throws: an error if the socket or the TLS context could not be created.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(try configuration.address.socketAddress)
        state = Lock(OriginState(recordedRequests: configuration.recordedRequests))
        base = try configuration.address.baseURL(
            host: configuration.name, isSecure: configuration.tls != nil, port: life.port)
    }

    /// The port it listens on; 0 for a Unix socket.
    public var port: UInt16 { life.port }

    /// Returns the URL of a path on this origin.
    ///
    /// ```swift
    /// origin.url("/a?b=c")   // http://127.0.0.1:40123/a?b=c
    /// ```
    /// - Parameter path: a URL path with its query, beginning with `/`. An invalid path yields the URL of the origin
    ///   itself.
    public func url(_ path: String = "/") -> URL { URL(string: base.absoluteString + path) ?? base }

    // MARK: Lifetime

    /// Serves in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection; returns once all are closed and their handlers have ended.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled; every connection is a child of that task.
    /// Returns once all are closed. Can be called once.
    @concurrent public func run() async { await serveAll() }

    func closed(_ connection: OriginConnection) {
        change { $0.record.close(connection.number) }
    }
}

extension HTTPTestServer: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout OriginState) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> OriginConnection? {
        change { $0.record.open { OriginConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [OriginConnection] { state.withLock { $0.record.stop() } }
}

/// Runs an origin for the duration of a closure; all connections are closed before this function returns or throws.
///
/// ```swift
/// try await withHTTPTestServer { origin in
///     origin.route("/") { _ in .ok("here") }
///     …
/// }
/// ```
/// - Throws: the errors of ``HTTPTestServer/init(_:)`` and of the closure.
nonisolated(nonsending) public func withHTTPTestServer<R>(
    _ configuration: HTTPTestServer.Configuration = .init(),
    _ use: nonisolated(nonsending) (HTTPTestServer) async throws -> R
) async throws -> R {
    try await HTTPTestServer(configuration).serving(use)
}

/// The origin could not be created as configured.
public struct HTTPTestServerError: Error, Sendable, CustomStringConvertible {
    /// A description of the error.
    public let description: String
    init(_ description: String) { self.description = description }
}
