// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Synchronization
import URLLoadingIO

extension HTTP3TestServer {
    /// Controls a connection, which is closed when the script returns. A thrown error is recorded as a complaint,
    /// unless it is ``HTTP3Peer/Failure/left``.
    public typealias Script = @Sendable (HTTP3Peer) async throws -> Void

    /// Answers requests for a path, on connections without a script. A later route for the same path replaces an
    /// earlier one.
    ///
    /// ```swift
    /// server.route("/echo") { request in .ok(.bytes(request.body)) }
    /// server.route("/slow") { _ in .ok(.chunks(["a", .pause(.seconds(1)), "b"], trailers: ["sum": "2"])) }
    /// ```
    ///
    /// Responses are those of ``HTTPTestServer``, as far as HTTP/3 has an equivalent: `.chunks` and `.untilClose`
    /// become DATA frames and the end of the stream, `.declared` a content-length that does not match. `.raw` sends
    /// bytes in place of frames; its `.close` closes the connection once the client has received them, `.reset` lets it
    /// fall silent, as after a crash.
    /// - Parameters:
    ///   - path: compared with `:path` up to its `?`. With a trailing `*` it matches as a prefix, unless a longer route
    ///     matches.
    ///   - readsBody: whether a request is read completely before it is answered. If false, `handler` is called at
    ///     once, and after the response the client is asked to send no more.
    public func route(_ path: String, readsBody: Bool = true, _ handler: @escaping HTTPTestServer.Handler) {
        state.withLock { $0.record.routes[path] = HTTPTestServer.Route(handler: handler, readsBody: readsBody) }
    }

    /// Lets a script control all connections, or one of them. The latest matching script wins.
    ///
    /// ```swift
    /// server.script { peer in
    ///     try await peer.start()
    ///     let request = try await peer.expectRequest()
    ///     try await peer.respond(to: request.stream, .ok, body: Array("hello".utf8))
    ///     await peer.untilClosed()
    /// }
    /// ```
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func script(onConnection connection: Int? = nil, _ script: @escaping Script) {
        state.withLock { $0.scripts.append((connection, script)) }
    }

    /// Applies a fault to all connections, or one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func inject(_ fault: HTTP3Fault, onConnection connection: Int? = nil) {
        script(onConnection: connection) { peer in
            peer.server.change { $0.record.counts.faults += 1 }
            try await fault.script(peer)
        }
    }

    /// Removes all scripts: later connections are served by routes.
    public func removeScripts() { state.withLock { $0.scripts = [] } }

    /// Sends GOAWAY on connections that are served by routes, on all or one of them: requests that have arrived are
    /// answered, later ones are rejected with H3_REQUEST_REJECTED (RFC 9114 §5.2).
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func goAway(onConnection connection: Int? = nil) {
        for open in connections(connection) { open.goAway() }
    }

    /// Closes connections with an error code (RFC 9114 §8), all or one of them.
    /// - Parameter connection: its number, from 1 in order of acceptance; `nil` for all.
    public func close(_ code: HTTP3Frame.ErrorCode = .noError, onConnection connection: Int? = nil) {
        for open in connections(connection) { open.peer.close(code) }
    }

    /// Neither receives nor sends anything from now on, on any connection, as a machine that has crashed.
    public func fallSilent() {
        listener.fallSilent()
        for open in connections(nil) { open.peer.fallSilent() }
    }

    /// Resumes every script that is paused at ``HTTP3Peer/hold()``.
    public func release() { for open in connections(nil) { open.peer.release() } }

    private func connections(_ number: Int?) -> [HTTP3ServerConnection] {
        state.withLock { state in
            state.record.connections.open.filter { number ?? $0.key == $0.key }.map(\.value)
        }
    }
}

#endif
