public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Session {
    /// Makes a WebSocket that is opened when it is resumed. Synchronous, from any thread.
    ///
    /// ```swift
    /// var request = Request(url: URL(string: "wss://example.org/chat")!)
    /// request.headers["Origin"] = "https://example.org"
    /// let socket = session.webSocketTask(request, protocols: ["chat.v2", "chat.v1"])
    /// socket.resume()
    /// let opening = try await socket.opened
    /// ```
    /// - Parameters:
    ///   - request: a GET of a URL with ws or wss; http and https are the same. The fields of the handshake are written
    ///     by the library.
    ///   - protocols: subprotocols to offer, best first; each a token, and once.
    ///   - decisions: go before the session's own.
    /// - Returns: a suspended socket. If the request or the subprotocols are none, or the session was invalidated, it is
    ///   one that has failed.
    public nonisolated func webSocketTask(
        _ request: Request, protocols: [String] = [], options: WebSocketOptions = WebSocketOptions(),
        decisions: Decisions? = nil
    ) -> WebSocketTask {
        WebSocketTask(WebSocketDriver(core, request, protocols, options, decisions), self)
    }

    /// For the classic shape, which holds its session and hears of everything.
    package nonisolated func webSocketTask(
        _ request: Request, protocols: [String], options: WebSocketOptions, decisions: Decisions?,
        sink: any WebSocketSink
    ) -> WebSocketTask {
        WebSocketTask(WebSocketDriver(core, request, protocols, options, decisions, sink: sink), self)
    }

    /// Makes a WebSocket to a URL; see ``webSocketTask(_:protocols:options:decisions:)-(Request,_,_,_)``.
    public nonisolated func webSocketTask(
        _ url: URL, protocols: [String] = [], options: WebSocketOptions = WebSocketOptions()
    ) -> WebSocketTask {
        webSocketTask(Request(url: url), protocols: protocols, options: options)
    }

    /// Opens a WebSocket for the length of a scope. When the closure returns, the socket is closed with 1000, and this
    /// returns when that is done; when it throws, with 1001.
    ///
    /// ```swift
    /// let answer = try await session.webSocket(Request(url: url)) { socket in
    ///     try await socket.send(.text("ping"))
    ///     return try await socket.receive()
    /// }
    /// ```
    /// - Throws: ``LoadError``, why it was not opened, or what the closure throws. Cancelling the calling task ends the
    ///   socket, and what the closure waits for of it.
    public nonisolated(nonsending) func webSocket<R>(
        _ request: Request, protocols: [String] = [], options: WebSocketOptions = WebSocketOptions(),
        decisions: Decisions? = nil, _ use: nonisolated(nonsending) (WebSocketTask) async throws -> R
    ) async throws -> R {
        let socket = webSocketTask(request, protocols: protocols, options: options, decisions: decisions)
        socket.resume()
        return try await withTaskCancellationHandler {
            do {
                _ = try await socket.opened
                let result = try await use(socket)
                await socket.close()
                return result
            } catch {
                await socket.close(WebSocketClose(.goingAway))
                throw error
            }
        } onCancel: {
            socket.cancel()
        }
    }
}
