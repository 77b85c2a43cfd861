// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension StreamTask {
    /// The bytes that the peer sends, in chunks as they arrive. Each step of the iteration reads once from the socket.
    ///
    /// ```swift
    /// for try await chunk in task.input { file.write(Data(chunk)) }
    /// ```
    public var input: StreamInput { StreamInput(task: self) }

    /// The writing side alone, for code that must not read from or control the stream.
    public var output: StreamOutput { StreamOutput(task: self) }
}

/// The bytes that the peer of a ``StreamTask`` sends, in chunks as they arrive.
///
/// Any number of iterators, and ``StreamTask/read(atLeast:atMost:timeout:)``, may read from the stream one after the
/// other; each continues where the previous reader stopped. Two readers at the same time get
/// ``LoadError/Reason/streamBusy``. The sequence keeps the stream alive.
///
/// Cancelling the task that iterates ends the iteration with ``LoadError/Reason/cancelled``; the stream continues.
public struct StreamInput: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let task: StreamTask

    public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

    /// Reads the stream chunk by chunk.
    public struct Iterator: AsyncIteratorProtocol {
        let task: StreamTask

        /// Returns the next bytes, at least one; `nil` when the peer has sent all.
        /// - Throws: the ``LoadError`` of the stream.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            // Without an actor the read runs in place; on an actor, decryption would occupy it, so the read runs
            // elsewhere.
            if actor == nil { return try await task.load.next() }
            return try await Self.nextOffActor(task)
        }

        /// Returns the next bytes, at least one; `nil` when the peer has sent all.
        /// - Throws: the ``LoadError`` of the stream.
        public mutating func next() async throws(LoadError) -> Chunk? { try await Self.nextOffActor(task) }

        @concurrent private static func nextOffActor(_ task: StreamTask) async throws(LoadError) -> Chunk? {
            try await task.load.next()
        }
    }
}

/// The writing side of a ``StreamTask``. It keeps the stream alive.
///
/// ```swift
/// let output = task.output
/// for line in lines { try await output.write(Data(line.utf8)) }
/// try await output.close()
/// ```
public struct StreamOutput: Sendable {
    let task: StreamTask

    /// Writes bytes; see ``StreamTask/write(_:timeout:)``.
    @concurrent
    public func write<Bytes: ContiguousBytes & Sendable>(
        _ bytes: Bytes, timeout limit: Duration? = nil
    ) async throws(LoadError) {
        try await task.write(bytes, timeout: limit)
    }

    /// Closes the writing side; see ``StreamTask/closeWrite()``.
    @concurrent
    public func close() async throws(LoadError) { try await task.closeWrite() }
}
