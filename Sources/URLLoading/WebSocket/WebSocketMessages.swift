extension WebSocketTask {
    /// What the server sends, message by message. Pulled: each step reads one. It ends when the server closes with 1000,
    /// 1001 or without a reason; another one is ``LoadError/Reason/webSocketClosed``.
    ///
    /// ```swift
    /// for try await message in socket.messages { print(message) }
    /// ```
    public var messages: WebSocketMessages { WebSocketMessages(task: self) }
}

/// The messages of a ``WebSocketTask``. Any number of iterators, and ``WebSocketTask/receive()``, take from the same
/// socket one after the other; two at a time get ``LoadError/Reason/webSocketBusy``. It holds the socket.
///
/// Cancelling the task that iterates ends the iteration with ``LoadError/Reason/cancelled``, and not the socket.
public struct WebSocketMessages: AsyncSequence, Sendable {
    public typealias Element = WebSocketMessage
    public typealias Failure = LoadError

    let task: WebSocketTask

    public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

    /// A receiver of the socket.
    public struct Iterator: AsyncIteratorProtocol {
        let task: WebSocketTask

        /// The next message; `nil` when the server has closed.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> WebSocketMessage? {
            // In place where nobody is disturbed; off the actor where deciphering would hold it up.
            if actor == nil { return try await task.load.receive() }
            return try await Self.nextElsewhere(task)
        }

        /// The next message; `nil` when the server has closed.
        public mutating func next() async throws(LoadError) -> WebSocketMessage? { try await Self.nextElsewhere(task) }

        @concurrent private static func nextElsewhere(_ task: WebSocketTask) async throws(LoadError)
            -> WebSocketMessage?
        {
            try await task.load.receive()
        }
    }
}
