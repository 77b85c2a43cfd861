public import Foundation

/// Hears of WebSockets; both methods are asked of whoever says that he is one.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The socket is open.
    /// - Parameter protocol: the subprotocol that the server has chosen; `nil` for none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// The server has taken leave: first, or as an answer to ours.
    /// - Parameter reason: UTF-8; `nil` if it gave none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}
