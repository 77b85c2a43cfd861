public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// A WebSocket (RFC 6455): messages both ways.
///
/// ```swift
/// let socket = session.webSocketTask(with: URL(string: "wss://example.org/chat")!, protocols: ["chat"])
/// socket.resume()
/// try await socket.send(.string("hello"))
/// while case .string(let text) = try await socket.receive() { print(text) }
/// ```
/// Sends go out in the order of the calls, receives get messages in the order of theirs; both wait until the socket is
/// open. Nothing is read that nobody wants to receive, but for pings, which are answered, and a close. Handlers are called
/// on the session's ``URLSession/delegateQueue``, each once.
///
/// The delegate hears `didOpenWithProtocol`, `didCloseWith` if the server took leave, and `didCompleteWithError`: `nil` if
/// both sides took leave.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    /// Why a socket is closed (RFC 6455 §7.4).
    public enum CloseCode: Int, Sendable {
        /// It is not closed; or with a code that has no name here, such as those of applications (3000 to 4999).
        case invalid = 0
        case normalClosure = 1000
        case goingAway = 1001
        case protocolError = 1002
        case unsupportedData = 1003
        /// The close had no code. Never sent.
        case noStatusReceived = 1005
        /// The connection ended without a close. Never sent.
        case abnormalClosure = 1006
        case invalidFramePayloadData = 1007
        case policyViolation = 1008
        case messageTooBig = 1009
        case mandatoryExtensionMissing = 1010
        case internalServerError = 1011
        /// Never sent.
        case tlsHandshakeFailure = 1015
    }

    /// What goes over it, whole.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }

    private let calls = CallChain()
    private let own = Lock<(code: CloseCode, reason: Data?)>((.invalid, nil))

    open override var error: (any Error)? { super.error }

    /// Opens the socket.
    open override func resume() { super.resume() }

    /// Ends the socket with `URLError.cancelled`; the server hears 1001 if that goes out at once.
    open override func cancel() { super.cancel() }

    // MARK: Messages

    /// Sends a message, behind those of earlier calls.
    /// - Parameter completionHandler: called once, when the system has taken all of it; with a `URLError` if the socket
    ///   has ended.
    public func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        perform(.output, { socket in try await socket.send(WebSocketMessage(message)) }) {
            completionHandler($0.failure)
        }
    }

    /// Sends a message, behind those of earlier calls; returns when the system has taken all of it. Cancelling the calling
    /// task gives the message up.
    public func send(_ message: Message) async throws {
        try await performed(.output) { socket in try await socket.send(WebSocketMessage(message)) }
    }

    /// The next message.
    /// - Parameter completionHandler: called once, with the message, or a `URLError` if the socket has ended.
    public func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        perform(.input, { socket in Message(try await socket.receive()) }) { completionHandler($0) }
    }

    /// The next message. Cancelling the calling task ends the call; no message is lost by it.
    public func receive() async throws -> Message {
        try await performed(.input) { socket in Message(try await socket.receive()) }
    }

    // MARK: Pings

    /// Asks the server whether it is there.
    /// - Parameter pongReceiveHandler: called once, when it has answered; with a `URLError` if the socket ends before.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        guard let lane else { return pongReceiveHandler(URLError.described(.cancelled)) }
        Task {
            let result = await attempt { try await $0.ping(timeout: .seconds(1_000_000_000)) }
            lane.append(.call { pongReceiveHandler(result.failure) })
        }
    }

    /// Asks the server whether it is there, and returns when it has answered.
    open func sendPing() async throws {
        _ = try await attempt { try await $0.ping(timeout: .seconds(1_000_000_000)) }.get()
    }

    // MARK: The end

    /// Takes leave, behind what is being sent, and waits a while for the server to do the same. The delegate hears
    /// `didCloseWith` when it has. Before the socket is open this is ``cancel()``.
    /// - Parameters:
    ///   - closeCode: ``CloseCode/invalid`` and those that are never sent go without a code.
    ///   - reason: UTF-8; what is beyond 123 bytes is cut.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        own.withLock { if $0.code == .invalid { $0 = (closeCode, reason) } }
        guard let socket = bridge?.socket else { return super.cancel() }
        let close = WebSocketClose(
            WebSocketClose.Code(rawValue: UInt16(closeCode.rawValue)),
            reason: String(decoding: reason ?? Data(), as: UTF8.self))
        calls.append(.output) { await socket.close(close) }
    }

    /// The code the server closed with, or we did if it has not answered; ``CloseCode/invalid`` while the socket is open.
    open var closeCode: CloseCode { (bridge?.closing ?? own.withLock { $0 }).code }
    /// The reason beside ``closeCode``.
    open var closeReason: Data? { (bridge?.closing ?? own.withLock { $0 }).reason }

    /// The most bytes that a message received may have, expanded; 1 MiB by default. A longer one ends the socket, and the
    /// server hears 1009. Counts from the next read on.
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
        // A stand-in has no session, and no queue.
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
