package import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// A WebSocket that one holds: made at once, opened when it is resumed, used from any thread (RFC 6455).
///
/// Get one from ``Session/webSocketTask(_:protocols:options:decisions:)``. The way there is that of any load: redirects,
/// challenges, proxies, trust decisions, timeouts and events are those of its request and its session. After it is open
/// these timeouts hold no more: a silent server is no failure unless ``WebSocketOptions/pingInterval`` says so.
///
/// ```swift
/// let socket = session.webSocketTask(URL(string: "wss://example.org/chat")!)
/// socket.resume()
/// try await socket.send(.text("hello"))
/// for try await message in socket.messages { print(message) }
/// ```
/// ``Session/webSocket(_:protocols:options:decisions:_:)`` is the simpler way where a scope is all it lives for.
///
/// Nothing is read that nobody asked for, so a receiver who takes his time slows the server down. But for pings, which
/// are answered, and a close: a socket that nobody receives on is looked after once a second, and at most
/// ``WebSocketOptions/readAhead`` bytes of messages are taken ahead.
///
/// The socket ends when one side closes it, when the connection is lost, when the server breaks the protocol, with
/// ``cancel()``, with its session, and when nobody holds the handle or its ``messages`` any more. Cancelling a task that
/// waits for it ends that call with ``LoadError/Reason/cancelled``, and not the socket.
public final class WebSocketTask: Sendable, CustomStringConvertible {
    let load: WebSocketDriver
    /// Its session: the holder of a task that was not resumed yet keeps it alive.
    private let owner: (any Sendable)?

    init(_ load: WebSocketDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
    }

    deinit { load.stop(.cancelled) }

    /// What was asked for.
    package var url: URL { load.url }

    // MARK: Controls

    /// Opens the socket. Resuming one that is open, or has ended, does nothing.
    public func resume() { load.resume() }

    /// Others decide than those it was made with. Before it begins, by whoever is about to begin it.
    package func decide(by decisions: Decisions) { load.context.decide(by: decisions) }

    /// Ends the socket with ``LoadError/Reason/cancelled``, resumed or not. The server hears 1001 if that goes out at
    /// once. Returns at once; ``ended()`` waits.
    public func cancel() { load.stop(.cancelled) }

    /// What was agreed upon, as soon as the socket is open. Waits for ever if nobody resumes it.
    /// - Throws: ``LoadError``, why it was not opened: ``LoadError/Reason/webSocketRefused`` if the server answered
    ///   anything else than 101, with ``LoadError/webSocketRefusal``. Cancelling the calling task ends the wait.
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

    /// Sends a message. Returns when the system has taken all of it, which does not say that the server has. Messages
    /// that several tasks send at the same time go out whole, in the order of the calls.
    ///
    /// ```swift
    /// try await socket.send(.text(#"{"subscribe": "news"}"#))
    /// ```
    /// - Throws: ``LoadError``: ``LoadError/Reason/webSocketClosed``, or why the socket has ended. Cancelling the calling
    ///   task ends the call with ``LoadError/Reason/cancelled``; if a part of a long message is on its way by then,
    ///   nothing can follow it, and the socket ends with ``LoadError/Reason/writeIncomplete``.
    @concurrent
    public func send(_ message: WebSocketMessage) async throws(LoadError) { try await load.send(message) }

    /// The next message. They come whole and in order; one that nobody waits for any more is left to the next call.
    ///
    /// - Throws: ``LoadError``: ``LoadError/Reason/webSocketClosed`` with ``LoadError/webSocketClose`` once the server has
    ///   closed, ``LoadError/Reason/webSocketBusy`` if another task receives, or why the socket has ended. Cancelling
    ///   the calling task ends the call with ``LoadError/Reason/cancelled``; nothing is lost by it.
    @concurrent
    public func receive() async throws(LoadError) -> WebSocketMessage {
        if let message = try await load.receive() { return message }
        throw load.state.withLock { $0.outcome }.map { load.ended($0) } ?? load.failure(.webSocketClosed)
    }

    // MARK: Pings

    /// Asks the server whether it is there (RFC 6455 5.5.2), and returns how long the answer took. While more
    /// than ``WebSocketOptions/readAhead`` bytes wait for a receiver, no answer can be heard.
    /// - Parameter limit: how long to wait; more than zero.
    /// - Throws: ``LoadError``: ``LoadError/Reason/pingTimeout``, after which the socket goes on, or why it has ended.
    @concurrent @discardableResult
    public func ping(timeout limit: Duration = .seconds(10)) async throws(LoadError) -> Duration {
        try await load.ping(timeout: limit)
    }

    // MARK: The end

    /// Takes leave behind all that is being sent, waits for the server to do the same and to close the connection, at
    /// most ``WebSocketOptions/closeTimeout``, and returns when nothing is left of the socket. Messages that come
    /// meanwhile reach whoever receives; if nobody does, nobody.
    ///
    /// ```swift
    /// let ending = await socket.close(WebSocketClose(.normal, reason: "done for today"))
    /// ```
    /// Cancelling the calling task gives the wait up, and the connection with it. On a socket that is not open yet it is
    /// ``cancel()``.
    /// - Parameter close: a code that may not be sent (``WebSocketClose/Code/isSendable``) goes without.
    @concurrent @discardableResult
    public func close(_ close: WebSocketClose = WebSocketClose(.normal)) async -> WebSocketEnding {
        await load.close(close)
        return load.ending
    }

    /// Returns when nothing is left of the socket. Cancelling the calling task does not shorten the wait.
    @concurrent
    public func ended() async -> WebSocketEnding {
        await load.over()
        return load.ending
    }

    /// How it ended; `nil` while nothing has ended it.
    package var endingSoFar: WebSocketEnding? { load.state.withLock { $0.outcome } == nil ? nil : load.ending }

    /// The most bytes that a message received may have: from the next read on.
    package var maximumMessageSize: Int {
        get { load.maximumMessageSize.load(ordering: .relaxed) }
        set { load.maximumMessageSize.store(newValue, ordering: .relaxed) }
    }

    /// State, bytes written and read with their frames, of one moment.
    public var snapshot: LoadSnapshot { LoadSnapshot(load) }

    /// One line: `websocket running 5/? wss://example.org/chat`.
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
        (state, priority) = load.state.withLock { state in
            let shown: State =
                switch state.outcome {
                case .closed? where state.isOver: .completed(nil)
                case .failed(let error)? where state.isOver: .completed(error)
                case .some: .canceling
                case nil: isStopped ? .canceling : state.isResumed ? .running : .suspended
                }
            return (shown, state.priority)
        }
        sent = load.sentCount.load(ordering: .relaxed)
        received = load.receivedCount.load(ordering: .relaxed)
        (expectedToSend, expectedToReceive) = (nil, nil)
    }
}
