// SPDX-License-Identifier: Apache-2.0

// Byte-by-byte reading of a body. Pieces arrive as in other tasks; within a piece, a byte costs as much as an array
// access.

public import Foundation

extension URLSession {
    /// Loads a request up to its response, and returns the body as a sequence of bytes, loaded on demand: a slow reader
    /// slows down the server.
    ///
    /// ```swift
    /// let (bytes, response) = try await session.bytes(from: url)
    /// for try await line in bytes.lines { print(line) }
    /// ```
    /// - Parameter delegate: the task's delegate; it is notified of redirects, challenges and metrics.
    /// - Throws: `URLError`. The load is cancelled by cancelling the calling task, by cancelling the iterating task,
    ///   and by releasing the sequence.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let pipe = BytePipe()
        let task = Self.$awaitedDelegate.withValue(delegate) { makeDataTask(request, .bytes(pipe)) }
        let source = ByteSource(pipe, task)
        let response = try await withTaskCancellationHandler {
            try await pipe.response {
                task.resume()
                if Task.isCancelled { task.cancel() }
            }
        } onCancel: {
            task.cancel()
        }
        return (AsyncBytes(task: task, source: source), response)
    }

    /// Loads a URL with GET up to the response, and returns the body as a sequence of bytes.
    public func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// The bytes of a body, in order. Single-pass: several iterators share the bytes.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = Iterator

        /// The task that loads the bytes.
        public let task: URLSessionDataTask
        private let source: ByteSource

        init(task: URLSessionDataTask, source: ByteSource) { (self.task, self.source) = (task, source) }

        public func makeAsyncIterator() -> Iterator { Iterator(source) }

        /// Iterates the bytes of the body.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline var piece: [UInt8] = []
            @usableFromInline var position = 0
            @usableFromInline let source: ByteSource

            init(_ source: ByteSource) { self.source = source }

            /// Returns the next byte; `nil` at the end.
            /// - Throws: `URLError`.
            @inlinable
            public mutating func next() async throws -> UInt8? { try await next(isolation: nil) }

            /// Returns the next byte; `nil` at the end.
            /// - Throws: `URLError`.
            @inlinable
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if position < piece.count {
                    defer { position += 1 }
                    return piece[position]
                }
                return try await refill(isolation: actor)
            }

            @usableFromInline
            mutating func refill(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                guard let next = try await source.next(), let first = next.first else {
                    (piece, position) = ([], 0)
                    return nil
                }
                (piece, position) = (next, 1)
                return first
            }
        }
    }
}

/// Retained by the sequence and its iterators; its deinitialization cancels the load.
@usableFromInline
final class ByteSource: Sendable {
    private let pipe: BytePipe
    private let task: URLSessionDataTask

    init(_ pipe: BytePipe, _ task: URLSessionDataTask) { (self.pipe, self.task) = (pipe, task) }

    deinit { task.cancel() }

    func next() async throws -> [UInt8]? {
        try await withTaskCancellationHandler {
            try await pipe.next()
        } onCancel: {
            task.cancel()
        }
    }
}
