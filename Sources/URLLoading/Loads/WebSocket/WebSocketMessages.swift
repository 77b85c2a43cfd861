// SPDX-License-Identifier: Apache-2.0

extension WebSocketTask {
    /// The messages that the server sends. Each step of the iteration reads one. The sequence ends when the server
    /// closes with 1000, 1001 or without a code; another code throws ``LoadError/Reason/webSocketClosed``.
    ///
    /// ```swift
    /// for try await message in socket.messages { print(message) }
    /// ```
    public var messages: WebSocketMessages { WebSocketMessages(task: self) }
}

/// The messages of a ``WebSocketTask``. Any number of iterators, and ``WebSocketTask/receive()``, may take messages
/// from one socket one after the other; two at the same time get ``LoadError/Reason/webSocketBusy``. The sequence keeps
/// the socket alive.
///
/// Cancelling the task that iterates ends the iteration with ``LoadError/Reason/cancelled``; the socket continues.
public struct WebSocketMessages: AsyncSequence, Sendable {
    public typealias Element = WebSocketMessage
    public typealias Failure = LoadError

    let task: WebSocketTask

    public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

    /// Receives the messages of the socket.
    public struct Iterator: AsyncIteratorProtocol {
        let task: WebSocketTask

        /// Returns the next message; `nil` when the server has closed.
        /// - Throws: ``LoadError/Reason/webSocketClosed`` for another code than 1000 and 1001, or the error of the
        ///   connection.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> WebSocketMessage? {
            // Without an actor the read runs in place; on an actor, decryption would occupy it, so the read runs
            // elsewhere.
            if actor == nil { return try await task.load.receive() }
            return try await Self.nextOffActor(task)
        }

        /// Returns the next message; `nil` when the server has closed.
        /// - Throws: ``LoadError/Reason/webSocketClosed`` for another code than 1000 and 1001, or the error of the
        ///   connection.
        public mutating func next() async throws(LoadError) -> WebSocketMessage? { try await Self.nextOffActor(task) }

        @concurrent private static func nextOffActor(_ task: WebSocketTask) async throws(LoadError)
            -> WebSocketMessage?
        {
            try await task.load.receive()
        }
    }
}
