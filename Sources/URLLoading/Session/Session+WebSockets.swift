// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingWire

extension Session {
    /// Creates a WebSocket that opens when it is resumed. Synchronous; may be called from any thread.
    ///
    /// ```swift
    /// var request = Request(url: URL(string: "wss://example.org/chat")!)
    /// request.headers["Origin"] = "https://example.org"
    /// let socket = session.webSocketTask(request, protocols: ["chat.v2", "chat.v1"])
    /// socket.resume()
    /// let opening = try await socket.opened
    /// ```
    /// - Parameters:
    ///   - request: a GET of a URL with ws or wss; http and https mean the same. The handshake's fields are written by
    ///     the library.
    ///   - protocols: subprotocols to offer, best first; each a token, without duplicates.
    ///   - decisions: take precedence over the session's own.
    /// - Returns: a suspended socket. If the request or a subprotocol is invalid, or the session was invalidated, the
    ///   socket has already failed.
    public nonisolated func webSocketTask(
        _ request: Request, protocols: [String] = [], options: WebSocketOptions = WebSocketOptions(),
        decisions: Decisions? = nil
    ) -> WebSocketTask {
        WebSocketTask(WebSocketDriver(core, request, protocols, options, decisions), self)
    }

    /// Creates a WebSocket for the classic API, whose sink holds the session and receives all events.
    package nonisolated func webSocketTask(
        _ request: Request, protocols: [String], options: WebSocketOptions, decisions: Decisions?,
        sink: any WebSocketSink
    ) -> WebSocketTask {
        WebSocketTask(WebSocketDriver(core, request, protocols, options, decisions, sink: sink), self)
    }

    /// Creates a WebSocket to a URL; see ``webSocketTask(_:protocols:options:decisions:)-(Request,_,_,_)``.
    public nonisolated func webSocketTask(
        _ url: URL, protocols: [String] = [], options: WebSocketOptions = WebSocketOptions()
    ) -> WebSocketTask {
        webSocketTask(Request(url: url), protocols: protocols, options: options)
    }

    /// Opens a WebSocket for the duration of a closure. When the closure returns, the socket is closed with code 1000,
    /// and the call returns when the closing handshake is done; when the closure throws, the socket is closed with
    /// 1001.
    ///
    /// ```swift
    /// let answer = try await session.webSocket(Request(url: url)) { socket in
    ///     try await socket.send(.text("ping"))
    ///     return try await socket.receive()
    /// }
    /// ```
    /// - Throws: ``LoadError`` if the socket was not opened, or the error of the closure. Cancelling the calling task
    ///   ends the socket, and the closure's calls that wait for it.
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
