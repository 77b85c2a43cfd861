// SPDX-License-Identifier: Apache-2.0

// WebSockets and streams: the calls to their delegates.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge: WebSocketSink {
    var socket: WebSocketTask? {
        guard case .socket(let socket)? = state.withLock({ $0.load }) else { return nil }
        return socket
    }

    var stream: StreamTask? {
        guard case .stream(let stream)? = state.withLock({ $0.load }) else { return nil }
        return stream
    }

    /// Adds a call to the delegate, in order.
    func process(_ call: Mailbox.Call) {
        state.withLock { $0.mailbox.put(conversation: call) }
        schedule()
    }

    func deliver(_ call: Mailbox.Call, _ session: URLSession, _ task: URLSessionWebSocketTask?) {
        guard let task, let delegate = socketDelegate else { return }
        switch call {
        case .opened(let subprotocol):
            delegate.urlSession(session, webSocketTask: task, didOpenWithProtocol: subprotocol)
        case .closed(let code, let reason):
            delegate.urlSession(session, webSocketTask: task, didCloseWith: code, reason: reason)
        default: break
        }
    }

    func deliver(_ call: Mailbox.Call, _ session: URLSession, _ task: URLSessionStreamTask?) {
        guard let task else { return }
        switch call {
        case .readClosed: streamDelegate?.urlSession(session, readClosedFor: task)
        case .writeClosed: streamDelegate?.urlSession(session, writeClosedFor: task)
        case .betterRoute: streamDelegate?.urlSession(session, betterRouteDiscoveredFor: task)
        case .captured(let streams):
            streamDelegate?.urlSession(
                session, streamTask: task, didBecome: streams.input, outputStream: streams.output)
            leave(session, task)
        default: break
        }
    }

    // MARK: WebSockets

    func opened(_ opening: WebSocketOpening) { process(.opened(opening.subprotocol)) }

    /// The close code and reason that the server sent.
    var closing: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)? {
        guard case .closing(let code, let reason) = state.withLock({ $0.remainder }) else { return nil }
        return (code, reason)
    }

    /// Stores the server's close code and reason before the task ends.
    func noteClosing() {
        guard let close = socket?.endingSoFar?.close else { return }
        let code = URLSessionWebSocketTask.CloseCode(rawValue: Int(close.code.rawValue)) ?? .invalid
        let reason = close.reason.isEmpty ? nil : Data(close.reason.utf8)
        state.withLock { $0.remainder = .closing(code, reason: reason) }
        process(.closed(code, reason))
    }

    // MARK: Streams

    /// Reports the end of a stream, which is the end of its task.
    func follow(_ stream: StreamTask) {
        Task.onLoop { [self] in
            let error = await stream.ended()
            if taskDelegate != nil {
                let metrics = stream.metrics
                state.withLock { $0.mailbox.put(metrics) }
            }
            finish(error)
        }
    }

    /// Watches for better routes. This needs a netlink socket, so it happens only if there is a delegate for it.
    func watchRoutes(of stream: StreamTask) {
        guard streamDelegate != nil else { return }
        Task.onLoop { await stream.watchRoutes { self.process(.betterRoute) } }
    }
}
