// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// A WebSocket with a handle: created suspended, opened when it is resumed, used from any thread (RFC 6455).
///
/// Get one from ``Session/webSocketTask(_:protocols:options:decisions:)``. It is opened as any load is run: redirects,
/// challenges, proxies, trust decisions, timeouts and events are those of its request and its session. Once it is open,
/// these timeouts no longer apply: a silent server is not a failure unless ``WebSocketOptions/pingInterval`` is set.
///
/// ```swift
/// let socket = session.webSocketTask(URL(string: "wss://example.org/chat")!)
/// socket.resume()
/// try await socket.send(.text("hello"))
/// for try await message in socket.messages { print(message) }
/// ```
/// ``Session/webSocket(_:protocols:options:decisions:_:)`` is simpler if the socket is used within one closure.
///
/// Messages are read on demand, so a slow receiver slows the server down. Without a receiver the socket is checked once
/// a second, to answer pings and a close, and at most ``WebSocketOptions/readAhead`` bytes of messages are read ahead.
///
/// The socket ends when one side closes it, when the connection is lost, when the server violates the protocol, with
/// ``cancel()``, with its session, and when the handle and its ``messages`` are all released. Cancelling a task that
/// waits for the socket ends that call with ``LoadError/Reason/cancelled``; the socket continues.
public final class WebSocketTask: Sendable, CustomStringConvertible {
    let load: WebSocketDriver
    /// The session. A task that was not resumed yet keeps its session alive through this reference.
    private let owner: (any Sendable)?

    init(_ load: WebSocketDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
    }

    deinit { load.stop(.cancelled) }

    /// The URL of the request.
    package var url: URL { load.url }

    // MARK: Controls

    /// Opens the socket. Resuming one that is open, or has ended, does nothing.
    public func resume() { load.resume() }

    /// Replaces the decisions that the task was created with. Call it before the socket begins, from the thread that is
    /// about to begin it.
    package func decide(by decisions: Decisions) { load.context.decide(by: decisions) }

    /// Ends the socket with ``LoadError/Reason/cancelled``, whether or not it was resumed. The server is sent code 1001
    /// if that is possible without a wait. Returns at once; ``ended()`` waits.
    public func cancel() { load.stop(.cancelled) }

    /// The result of the handshake, as soon as the socket is open. Waits forever if the task is never resumed.
    /// - Throws: ``LoadError`` if the socket was not opened: ``LoadError/Reason/webSocketRefused`` if the server's
    ///   status was not 101 (over HTTP/2: not 2xx), with ``LoadError/webSocketRefusal``. Cancelling the calling task
    ///   ends only the wait.
    public var opened: WebSocketOpening {
        get async throws(LoadError) {
            try await load.calling { (call) throws(LoadError) in
                try await load.wait(call, reading: false) { state in
                    if let opening = state.opening { return .success(opening) }
                    return state.outcome.map { .failure(load.ended($0)) }
                }
            }
        }
    }

    // MARK: Messages

    /// Sends a message. Returns when the system has taken all of it, which does not mean that the server has received
    /// it. Messages that several tasks send at the same time are sent whole, in the order of the calls.
    ///
    /// ```swift
    /// try await socket.send(.text(#"{"subscribe": "news"}"#))
    /// ```
    /// - Throws: ``LoadError``: ``LoadError/Reason/webSocketClosed``, or the error that ended the socket. Cancelling
    ///   the calling task ends the call with ``LoadError/Reason/cancelled``; if a part of a long message was sent by
    ///   then, the socket ends with ``LoadError/Reason/writeIncomplete``, because another message cannot follow.
    @concurrent
    public func send(_ message: WebSocketMessage) async throws(LoadError) { try await load.send(message) }

    /// Receives the next message. Messages are whole and in order; a message whose call was cancelled is left to the
    /// next call.
    ///
    /// - Throws: ``LoadError``: ``LoadError/Reason/webSocketClosed`` with ``LoadError/webSocketClose`` once the server
    ///   has closed, ``LoadError/Reason/webSocketBusy`` if another task receives, or the error that ended the socket.
    ///   Cancelling the calling task ends the call with ``LoadError/Reason/cancelled``; no message is lost by it.
    @concurrent
    public func receive() async throws(LoadError) -> WebSocketMessage {
        if let message = try await load.receive() { return message }
        throw load.state.withLock { $0.outcome }.map { load.ended($0) } ?? load.failure(.webSocketClosed)
    }

    // MARK: Pings

    /// Pings the server (RFC 6455 §5.5.2) and returns the round-trip time. While more than
    /// ``WebSocketOptions/readAhead`` bytes of messages wait for a receiver, the answer cannot be read.
    /// - Parameter limit: the timeout; more than zero, `nil` for none.
    /// - Throws: ``LoadError``: ``LoadError/Reason/pingTimeout``, after which the socket continues, or the error that
    ///   ended it.
    @concurrent @discardableResult
    public func ping(timeout limit: Duration? = .seconds(10)) async throws(LoadError) -> Duration {
        try await load.ping(timeout: limit)
    }

    // MARK: The end

    /// Closes the socket in order: sends a close frame after all messages being sent, waits for the server's close
    /// frame and for the end of the connection, at most ``WebSocketOptions/closeTimeout``, and returns when the socket
    /// has released all its resources. Messages that arrive meanwhile are delivered to a receiver, or dropped without
    /// one.
    ///
    /// ```swift
    /// let ending = await socket.close(WebSocketClose(.normal, reason: "done for today"))
    /// ```
    /// Cancelling the calling task ends the wait and the connection. On a socket that is not open yet this equals
    /// ``cancel()``.
    /// - Parameter close: the code and the reason. A code that may not be sent (``WebSocketClose/Code/isSendable``) is
    ///   left out.
    @concurrent @discardableResult
    public func close(_ close: WebSocketClose = WebSocketClose(.normal)) async -> WebSocketEnding {
        await load.close(close)
        return load.ending
    }

    /// Notes the close frame of a call that is about to close the socket: a stop before the call's turn sends this
    /// frame.
    package func announceClose(_ close: WebSocketClose) {
        load.state.withLock { $0.control.announceClose(close) }
    }

    /// Closes the socket as soon as `earlier`, which sends messages, has ended; after
    /// ``WebSocketOptions/closeTimeout`` in any case, because the peer may have stopped reading.
    package func close(_ close: WebSocketClose, after earlier: Task<Void, Never>) async {
        let patience = StopToken(clock: load.clock)
        Task(executorPreference: LoopPreference.current) {
            await earlier.value
            patience.stop(.cancelled)
        }
        let moment = load.clock.now() &+ LoadHandle.nanoseconds(load.options.closeTimeout)
        try? await load.clock.sleep(until: moment, patience)
        await self.close(close)
    }

    /// Waits until the socket has ended and released its resources. Cancelling the calling task does not shorten the
    /// wait.
    @concurrent
    public func ended() async -> WebSocketEnding {
        await load.over()
        return load.ending
    }

    /// The ending of the socket; `nil` while it has not ended.
    package var endingSoFar: WebSocketEnding? { load.state.withLock { $0.outcome } == nil ? nil : load.ending }

    /// The maximum size of a received message in bytes, from the next read on.
    package var maximumMessageSize: Int {
        get { load.maximumMessageSize.load(ordering: .relaxed) }
        set { load.maximumMessageSize.store(newValue, ordering: .relaxed) }
    }

    /// The state and the bytes written and read, frame headers included, at this moment.
    public var snapshot: LoadSnapshot { LoadSnapshot(load) }

    /// The socket on one line: `websocket running 5/? wss://example.org/chat`.
    public var description: String { "websocket \(snapshot) \(load.url.withoutSecrets)" }
}

extension WebSocketDriver {
    var ending: WebSocketEnding {
        switch state.withLock({ $0.outcome }) {
        case .closed(let close, let byPeer)?:
            WebSocketEnding(close: close ?? WebSocketClose(.noStatus), isClosedByServer: byPeer, error: nil)
        case .failed(let error)?: WebSocketEnding(close: nil, isClosedByServer: error.party == .remote, error: error)
        case nil: WebSocketEnding(close: nil, isClosedByServer: false, error: failure(.cancelled))
        }
    }
}

extension LoadSnapshot {
    fileprivate init(_ load: WebSocketDriver) {
        let isStopped = load.stopReason != nil
        let (state, priority) = load.state.withLock { state in
            let shown: State =
                switch state.outcome {
                case .closed? where state.isOver: .completed(nil)
                case .failed(let error)? where state.isOver: .completed(error)
                case .some: .canceling
                case nil: isStopped ? .canceling : state.isResumed ? .running : .suspended
                }
            return (shown, state.priority)
        }
        let counts = LoadCounts(
            sent: load.sentCount.load(ordering: .relaxed), received: load.receivedCount.load(ordering: .relaxed))
        self.init(state, counts, priority?.rawValue)
    }
}
