// SPDX-License-Identifier: Apache-2.0

// WebSockets over HTTP/2 streams (RFC 8441), served as over HTTP/1.1.

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP2TestServer {
    /// Serves WebSockets for a path, on connections without a script. The server's settings must announce support:
    ///
    /// ```swift
    /// var configuration = HTTP2TestServer.Configuration()
    /// configuration.settings.append(.enableConnectProtocol(1))
    /// try await withHTTP2TestServer(configuration) { server in
    ///     server.webSocket("/echo", .echo)
    ///     …
    /// }
    /// ```
    /// Handshake faults that concern fields specific to HTTP/1.1 have no effect here.
    public func webSocket(_ path: String, _ webSocket: WebSocketTestServer) {
        state.withLock { $0.webSockets[path] = webSocket }
    }

    /// Serves WebSockets for a path with a script.
    public func webSocket(_ path: String, _ script: @escaping WebSocketTestServer.Script) {
        webSocket(path, WebSocketTestServer(script))
    }
}

extension HTTP2Routes {
    func webSocket(for request: HTTPTestServer.RecordedRequest) -> WebSocketTestServer? {
        let path = String(request.target.prefix { $0 != "?" })
        return peer.server.state.withLock { $0.webSockets[path] }
    }

    func serve(
        _ server: WebSocketTestServer, _ request: HTTPTestServer.RecordedRequest, _ stream: Int, _ slot: PollSlot
    ) async throws(StreamEnded) {
        var deflate: MessageDeflate?
        var answer = server.answer(to: request, &deflate)
        for name in ["Upgrade", "Connection", "Sec-WebSocket-Accept"] { answer.set(name, nil) }
        server.handshakeFault?.apply(to: &answer, request)
        var headers = Headers()
        for field in answer.fields { headers.append(FieldName(field.name), field.value) }
        if server.handshakeFault == .endsBeforeHead { return reset(stream) }
        try section(stream, HTTP2Fields(.ok, headers))
        let byteStream = HTTP2WebSocketStream(self, stream, slot)
        if server.handshakeFault == nil { try? await server.script(TestWebSocket(request, byteStream, deflate)) }
        guard !isGone(stream) else { return }
        // RFC 8441 §5: END_STREAM ends the connection.
        insert(HTTP2Frame.data(stream: stream, [], endStream: true).bytes)
        while !byteStream.hasEnded {
            do { try await byteStream.fill() } catch { return }
            _ = byteStream.takeReceived()
        }
    }

    func reset(_ stream: Int) {
        state.withLock { $0.streams[stream]?.isReset = true }
        insert(HTTP2Frame.resetStream(stream, .cancel).bytes)
    }
}

/// The stream of an HTTP/2 connection that carries a WebSocket.
final class HTTP2WebSocketStream: WebSocketByteStream {
    private let routes: HTTP2Routes
    private let stream: Int
    private let slot: PollSlot
    private var hasMissed = false

    init(_ routes: HTTP2Routes, _ stream: Int, _ slot: PollSlot) {
        (self.routes, self.stream, self.slot) = (routes, stream, slot)
    }

    func takeReceived() -> [UInt8] {
        let (bytes, output) = routes.state.withLock { $0.takeReceived(on: stream) }
        if !output.isEmpty { routes.insert(output) }
        return bytes
    }

    var hasEnded: Bool {
        // Data that arrived before a reset counts.
        routes.peer.token.stopReason != nil
            || routes.state.withLock {
                $0.streams[stream].map { ($0.hasEnded || $0.isReset) && $0.received.isEmpty } ?? true
            }
    }

    func fill() async throws {
        while !hasEnded, routes.state.withLock({ $0.streams[stream]?.received.isEmpty }) == true {
            await Poller.shared.park(slot, until: routes.peer.token)
        }
    }

    /// Sends bytes. As on a socket, the first send after a reset does not fail.
    func send(_ bytes: [UInt8]) async throws {
        do { try await routes.data(stream, slot, bytes, endStream: false) } catch {
            guard !hasMissed, routes.peer.token.stopReason == nil else { throw error }
            hasMissed = true
        }
    }

    func stall() async throws {
        while !routes.isGone(stream) { await Poller.shared.park(slot, until: routes.peer.token) }
        throw StreamEnded()
    }

    func reset() { routes.reset(stream) }
}
