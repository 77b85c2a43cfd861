// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

extension HTTP2TestServer {
    /// Controls a connection, which is closed when the script returns. A thrown error is recorded as a complaint,
    /// unless it is ``HTTP2Peer/Failure/left``.
    public typealias Script = @Sendable (HTTP2Peer) async throws -> Void

    /// Answers requests for a path, on connections without a script. A later route for the same path replaces an
    /// earlier one.
    ///
    /// ```swift
    /// server.route("/echo") { request in .ok(.bytes(request.body)) }
    /// server.route("/slow") { _ in .ok(.chunks(["a", .pause(.seconds(1)), "b"], trailers: ["sum": "2"])) }
    /// ```
    ///
    /// Responses are those of ``HTTPTestServer``, as far as HTTP/2 has an equivalent: `.chunks` and `.untilClose`
    /// become DATA frames and END_STREAM, `.declared` a content-length that does not match, `.raw` sends bytes in place
    /// of frames.
    /// - Parameters:
    ///   - path: compared with `:path` up to its `?`. With a trailing `*` it matches as a prefix, unless a longer route
    ///     matches.
    ///   - readsBody: whether a request is read completely before it is answered. If false, `handler` is called at
    ///     once, and the stream's window is not enlarged.
    public func route(_ path: String, readsBody: Bool = true, _ handler: @escaping HTTPTestServer.Handler) {
        state.withLock { $0.record.routes[path] = HTTPTestServer.Route(handler: handler, readsBody: readsBody) }
    }

    /// Lets a script control all connections, or one of them. The latest matching script wins.
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

    /// Applies a fault to all connections, or one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func inject(_ fault: HTTP2Fault, onConnection connection: Int? = nil) {
        script(onConnection: connection) { peer in
            peer.server.change { $0.record.counts.faults += 1 }
            try await fault.script(peer)
        }
    }

    /// Removes all scripts: later connections are served by routes.
    public func removeScripts() { state.withLock { $0.scripts = [] } }

    /// Sends frames on connections that are served by routes, between frames of their own: on all, or one of them.
    ///
    /// ```swift
    /// server.send(.goAway(last: 1), .ping())
    /// ```
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func send(_ frames: HTTP2Frame..., onConnection connection: Int? = nil) {
        let bytes = frames.flatMap(\.bytes)
        for open in state.withLock({ Array($0.record.connections.open.values) })
        where connection ?? open.number == open.number {
            open.insert(bytes)
        }
    }

    /// Resumes every script that is paused at ``HTTP2Peer/hold()``.
    public func release() {
        for connection in state.withLock({ Array($0.record.connections.open.values) }) { connection.release() }
    }
}
