import Synchronization
import URLLoadingIO

extension HTTP2TestServer {
    /// What a connection does. When it returns, the connection is closed. What it throws is a complaint, unless it is
    /// ``HTTP2Peer/Failure/left``.
    public typealias Script = @Sendable (HTTP2Peer) async throws -> Void

    /// Answers requests for a path, on connections without a script. A later route for the same path takes the place
    /// of the earlier.
    ///
    /// ```swift
    /// server.route("/echo") { request in .ok(.bytes(request.body)) }
    /// server.route("/slow") { _ in .ok(.chunks(["a", .pause(.seconds(1)), "b"], trailers: ["sum": "2"])) }
    /// ```
    ///
    /// An answer is that of a ``TestOrigin``, as far as HTTP/2 has it: `.chunks` and `.untilClose` are DATA frames and
    /// END_STREAM, `.declared` a content-length that does not fit, `.raw` bytes on the connection in place of frames.
    /// - Parameters:
    ///   - path: compared with `:path` up to its `?`. With `*` at its end: all that begin so, unless a longer route fits.
    ///   - readsBody: whether a request is read to its end before it is answered. If not, `handler` is asked at once,
    ///     and the stream's window stays as it is.
    public func route(_ path: String, readsBody: Bool = true, _ handler: @escaping TestOrigin.Handler) {
        state.withLock { $0.routes[path] = TestOrigin.Route(handler: handler, readsBody: readsBody) }
    }

    /// Gives connections to a script: all, or one of them. The latest one given counts.
    ///
    /// ```swift
    /// server.script { peer in
    ///     try await peer.start(.initialWindowSize(1))
    ///     let request = try await peer.expectRequest()
    ///     try await peer.respond(to: request.stream, .ok, body: Array("hello".utf8))
    ///     try await peer.untilClosed()
    /// }
    /// ```
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func script(onConnection connection: Int? = nil, _ script: @escaping Script) {
        state.withLock { $0.scripts.append((connection, script)) }
    }

    /// Gives connections to a misbehaviour: all, or one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func misbehave(_ fault: HTTP2Fault, onConnection connection: Int? = nil) {
        script(onConnection: connection, fault.script)
    }

    /// Connections that come from now on are served by routes again.
    public func removeScripts() { state.withLock { $0.scripts = [] } }

    /// Sends frames on connections that are served by routes, between two frames of theirs: all, or one of them.
    ///
    /// ```swift
    /// server.send(.goAway(last: 1), .ping())
    /// ```
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func send(_ frames: HTTP2Frame..., onConnection connection: Int? = nil) {
        let bytes = frames.flatMap(\.bytes)
        for open in state.withLock({ Array($0.connections.values) }) where connection ?? open.number == open.number {
            open.insert(bytes)
        }
    }

    /// Lets every script that stands at ``HTTP2Peer/hold()`` go on.
    public func release() {
        for connection in state.withLock({ Array($0.connections.values) }) { connection.release() }
    }
}
