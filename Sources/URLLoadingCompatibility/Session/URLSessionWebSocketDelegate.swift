// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Is notified of WebSockets. The methods are called on delegates that conform to this protocol; each may be left out.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The WebSocket handshake is complete.
    /// - Parameter protocol: the subprotocol that the server chose; `nil` for none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The server sent a close frame, on its own or in reply to this side's.
    /// - Parameter reason: the reason in UTF-8; `nil` if the server gave none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        nextDelegate(session, webSocketTask)?.urlSession(
            session, webSocketTask: webSocketTask, didOpenWithProtocol: `protocol`)
    }

    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        nextDelegate(session, webSocketTask)?.urlSession(
            session, webSocketTask: webSocketTask, didCloseWith: closeCode, reason: reason)
    }

    private func nextDelegate(_ session: URLSession, _ task: URLSessionTask) -> (any URLSessionWebSocketDelegate)? {
        next(in: session, task) as? any URLSessionWebSocketDelegate
    }
}
