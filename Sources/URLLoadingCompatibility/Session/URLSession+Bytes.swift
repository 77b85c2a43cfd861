// A body byte by byte. Pieces come as they do for everybody; between two of them a byte costs what an array's element does.

public import Foundation
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Loads a request up to its response, and gives the body byte by byte, as it is asked for: a slow reader slows the
    /// server.
    ///
    /// ```swift
    /// let (bytes, response) = try await session.bytes(from: url)
    /// for try await line in bytes.lines { print(line) }
    /// ```
    /// - Parameter delegate: of the task; hears of redirects, challenges and metrics.
    /// - Throws: `URLError`. Cancelling the calling task, or later the one that iterates, cancels the load; so does letting
    ///   go of the bytes.
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

    /// The same for a URL, loaded with GET.
    public func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// The bytes of a body, in their order. For one reader: what one iterator has taken another does not get.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = Iterator

        /// The task that loads them.
        public let task: URLSessionDataTask
        private let source: ByteSource

        init(task: URLSessionDataTask, source: ByteSource) { (self.task, self.source) = (task, source) }

        public func makeAsyncIterator() -> Iterator { Iterator(source) }

        /// A reader of the body.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline var piece: [UInt8] = []
            @usableFromInline var position = 0
            @usableFromInline let source: ByteSource

            init(_ source: ByteSource) { self.source = source }

            /// The next byte; `nil` at the end.
            /// - Throws: `URLError`.
            @inlinable
            public mutating func next() async throws -> UInt8? { try await next(isolation: nil) }

            /// The next byte; `nil` at the end.
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

/// Whoever reads the body holds it; when nobody does, the load is cancelled.
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
