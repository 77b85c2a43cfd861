// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// A WebSocket (RFC 6455): messages in both directions.
///
/// ```swift
/// let socket = session.webSocketTask(with: URL(string: "wss://example.org/chat")!, protocols: ["chat"])
/// socket.resume()
/// try await socket.send(.string("hello"))
/// while case .string(let text) = try await socket.receive() { print(text) }
/// ```
/// Messages are sent in the order of the `send` calls and delivered in the order of the `receive` calls; both wait
/// until the socket is open. The socket reads only on `receive`, except for pings, which are answered, and a close
/// frame. Handlers are called on the session's ``URLSession/delegateQueue``, each once.
///
/// The delegate is notified with `didOpenWithProtocol`, with `didCloseWith` if the server sent a close frame, and with
/// `didCompleteWithError`: `nil` if both sides sent one.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The reason why a WebSocket was closed (RFC 6455 §7.4).
    public enum CloseCode: Int, Sendable {
        /// The socket is not closed, or its code has no case here, such as codes of applications (3000 to 4999).
        case invalid = 0
        /// 1000: the purpose of the connection is fulfilled.
        case normalClosure = 1000
        /// 1001: the peer goes away, as a server that shuts down.
        case goingAway = 1001
        /// 1002: the peer violated the protocol.
        case protocolError = 1002
        /// 1003: the peer does not accept this kind of message.
        case unsupportedData = 1003
        /// The close frame had no code. Never sent.
        case noStatusReceived = 1005
        /// The connection ended without a close frame. Never sent.
        case abnormalClosure = 1006
        /// 1007: the content of a message is invalid, such as text that is not UTF-8.
        case invalidFramePayloadData = 1007
        /// 1008: the message violates a policy of the receiver.
        case policyViolation = 1008
        /// 1009: the message is larger than the receiver accepts.
        case messageTooBig = 1009
        /// 1010: the response lacks an extension that the client requires.
        case mandatoryExtensionMissing = 1010
        /// 1011: the server met an unexpected condition.
        case internalServerError = 1011
        /// The TLS handshake failed. Never sent.
        case tlsHandshakeFailure = 1015
    }

    /// A whole message.
    public enum Message: Sendable {
        /// A message of bytes.
        case data(Data)
        /// A message of text.
        case string(String)
    }

    private let calls = CallChain()
    /// The task of the last ping with a handler. The next ping's handler is called after it has ended.
    private let lastPing = Lock<Task<Void, Never>?>(nil)
    private let own = Lock<(code: CloseCode, reason: Data?)>((.invalid, nil))

    open override var error: (any Error)? { super.error }

    /// Begins the WebSocket handshake.
    open override func resume() { super.resume() }

    /// Ends the socket with `URLError.cancelled`; the server receives the code 1001 if it can be sent at once.
    open override func cancel() { super.cancel() }

    // MARK: Messages

    /// Sends a message, after those of earlier calls.
    /// - Parameter completionHandler: called once, when the whole message was passed to the system, or with a
    ///   `URLError` if the socket has ended.
    public func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        perform(.output, { socket in try await socket.send(WebSocketMessage(message)) }) {
            completionHandler($0.failure)
        }
    }

    /// Sends a message, after those of earlier calls; returns when the whole message was passed to the system.
    /// Cancelling the calling task abandons the message.
    public func send(_ message: Message) async throws {
        try await performed(.output) { socket in try await socket.send(WebSocketMessage(message)) }
    }

    /// Receives the next message.
    /// - Parameter completionHandler: called once, with the message, or with a `URLError` if the socket has ended.
    public func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        perform(.input, { socket in Message(try await socket.receive()) }) { completionHandler($0) }
    }

    /// Returns the next message. Cancelling the calling task ends the call without losing a message.
    public func receive() async throws -> Message {
        try await performed(.input) { socket in Message(try await socket.receive()) }
    }

    // MARK: Pings

    /// Sends a ping. The handlers of several pings are called in the order of the pings.
    /// - Parameter pongReceiveHandler: called once, when the pong was received, or with a `URLError` if the socket ends
    ///   before.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let lane else { return pongReceiveHandler(URLError.described(.cancelled)) }
        lastPing.withLock { last in
            let earlier = last
            last = Task.onLoop { [self] in
                let result = await attempt { try await $0.ping(timeout: nil) }
                await earlier?.value
                lane.append(.call { pongReceiveHandler(result.failure) })
            }
        }
    }

    /// Sends a ping, and returns when the pong was received.
    open func sendPing() async throws {
        _ = try await attempt { try await $0.ping(timeout: nil) }.get()
    }

    // MARK: The end

    /// Sends a close frame after all pending messages, and waits a limited time for the server's: at most 10 seconds
    /// for the messages, and 10 more for the close. The delegate is notified with `didCloseWith` when it was received.
    /// Before the socket is open this is equal to ``cancel()``.
    /// - Parameters:
    ///   - closeCode: the code; ``CloseCode/invalid`` and codes that are never sent result in a frame without a code.
    ///   - reason: the reason in UTF-8; truncated to 123 bytes.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        own.withLock { if $0.code == .invalid { $0 = (closeCode, reason) } }
        guard let socket = bridge?.socket else { return super.cancel() }
        let close = WebSocketClose(
            WebSocketClose.Code(rawValue: UInt16(closeCode.rawValue)),
            reason: String(decoding: reason ?? Data(), as: UTF8.self))
        // A `cancel()` that follows at once still sends this code.
        socket.announceClose(close)
        let earlier = calls.append(.output) {}
        let closing = Task.onLoop { _ = await socket.close(close, after: earlier) }
        // Later messages are refused by the closed socket.
        calls.append(.output) { await closing.value }
    }

    /// The code of the server's close frame, or of this side's if the server has not replied; ``CloseCode/invalid``
    /// while the socket is open.
    open var closeCode: CloseCode { (bridge?.closing ?? own.withLock { $0 }).code }
    /// The reason that belongs to ``closeCode``.
    open var closeReason: Data? { (bridge?.closing ?? own.withLock { $0 }).reason }

    /// The maximum size of a received message in bytes, after decompression; 1 MiB by default. A longer message ends
    /// the socket, and the server receives the code 1009. Applies from the next read.
    open var maximumMessageSize: Int {
        get { bridge?.socket?.maximumMessageSize ?? Self.usualMessageSize }
        set { bridge?.socket?.maximumMessageSize = newValue }
    }
    static let usualMessageSize = 1 << 20

    // MARK: Calls

    private func attempt<Value: Sendable>(
        _ call: @Sendable (WebSocketTask) async throws -> Value
    ) async -> Result<Value, any Error> {
        guard let socket = bridge?.socket else { return .failure(error ?? URLError.described(.networkConnectionLost)) }
        do { return .success(try await call(socket)) } catch {
            return .failure((error as? LoadError).map { URLError($0) } ?? error)
        }
    }

    private func perform<Value: Sendable>(
        _ side: CallChain.Side, _ call: @escaping @Sendable (WebSocketTask) async throws -> Value,
        then: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        // A task created in a test has no session and no queue.
        guard let lane else { return then(.failure(URLError.described(.cancelled))) }
        calls.append(side) {
            let result = await self.attempt(call)
            lane.append(.call { then(result) })
        }
    }

    private func performed<Value: Sendable>(
        _ side: CallChain.Side, _ call: @escaping @Sendable (WebSocketTask) async throws -> Value
    ) async throws -> Value {
        let result = Lock<Result<Value, any Error>?>(nil)
        let task = calls.append(side) {
            let ended = await self.attempt(call)
            result.withLock { $0 = ended }
        }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        guard let result = result.withLock({ $0 }) else { throw URLError.described(.cancelled) }
        return try result.get()
    }
}

extension Result {
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}

extension WebSocketMessage {
    fileprivate init(_ message: URLSessionWebSocketTask.Message) {
        self =
            switch message {
            case .data(let data): .data(data)
            case .string(let text): .text(text)
            }
    }
}

extension URLSessionWebSocketTask.Message {
    fileprivate init(_ message: WebSocketMessage) {
        self =
            switch message {
            case .data(let data): .data(data)
            case .text(let text): .string(text)
            }
    }
}
