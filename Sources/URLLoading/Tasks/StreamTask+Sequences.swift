public import FoundationEssentials

extension StreamTask {
    /// What the peer sends, as it comes. Pulled: each step reads once.
    ///
    /// ```swift
    /// for try await chunk in task.input { file.write(Data(chunk)) }
    /// ```
    public var input: StreamInput { StreamInput(task: self) }

    /// Where bytes for the peer go, without the rest of the handle.
    public var output: StreamOutput { StreamOutput(task: self) }
}

/// The bytes that the peer of a ``StreamTask`` sends, in chunks of whatever has come.
///
/// Any number of iterators, and ``StreamTask/read(atLeast:atMost:timeout:)``, read from the same stream one
/// after the other: each gets what the last has left. Two at a time get
/// ``LoadError/Reason/streamBusy``. It holds the stream.
///
/// Cancelling the task that iterates ends the iteration with ``LoadError/Reason/cancelled``, and not the
/// stream.
public struct StreamInput: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let task: StreamTask

    public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

    /// A reader of the stream.
    public struct Iterator: AsyncIteratorProtocol {
        let task: StreamTask

        /// The next bytes, at least one; `nil` when the peer has sent all.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            // In place where nobody is disturbed; off the actor where deciphering would hold it up.
            if actor == nil { return try await task.load.next() }
            return try await Self.nextElsewhere(task)
        }

        /// The next bytes, at least one; `nil` when the peer has sent all.
        public mutating func next() async throws(LoadError) -> Chunk? { try await Self.nextElsewhere(task) }

        @concurrent private static func nextElsewhere(_ task: StreamTask) async throws(LoadError) -> Chunk? {
            try await task.load.next()
        }
    }
}

/// Where bytes for the peer of a ``StreamTask`` go: for whoever only writes. It holds the stream.
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

    /// Tells the peer that nothing more comes; see ``StreamTask/closeWrite()``.
    @concurrent
    public func close() async throws(LoadError) { try await task.closeWrite() }
}
