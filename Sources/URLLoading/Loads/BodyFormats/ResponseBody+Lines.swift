// SPDX-License-Identifier: Apache-2.0

extension ResponseBody {
    /// The body as lines of UTF-8 text, each without its line ending: LF, CRLF or CR. Empty lines count; invalid UTF-8
    /// is repaired. The sequence claims the body, as iterating the body does.
    ///
    /// ```swift
    /// for try await line in body.lines { print(line) }
    /// ```
    /// A line longer than 1 MiB throws ``LoadError/Reason/bodyTooLarge``; ``lines(upTo:)`` sets another limit.
    public var lines: Lines { lines(upTo: 1 << 20) }

    /// The body as lines of UTF-8 text; see ``lines``.
    /// - Parameter limit: the maximum number of bytes of one line, at least 0.
    public func lines(upTo limit: Int) -> Lines { Lines(body: self, limit: limit) }

    /// The body as single bytes: convenient for small bodies, slow for large ones. Chunks and ``lines`` are faster.
    public var bytes: Bytes { Bytes(body: self) }

    /// The lines of a body.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String
        public typealias Failure = LoadError

        let body: ResponseBody
        let limit: Int

        public func makeAsyncIterator() -> Iterator {
            Iterator(chunks: body.makeAsyncIterator(), splitter: LineSplitter(limit: limit))
        }

        /// The iterator of the sequence.
        public struct Iterator: AsyncIteratorProtocol {
            var chunks: ResponseBody.Iterator
            var splitter: LineSplitter

            /// The next line; `nil` at the end.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> String? {
                while true {
                    if let line = try splitter.next() { return line }
                    guard let chunk = try await chunks.next(isolation: actor) else { return splitter.end() }
                    splitter.feed(chunk)
                }
            }

            /// The next line; `nil` at the end.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next() async throws(LoadError) -> String? { try await next(isolation: nil) }
        }
    }

    /// The bytes of a body.
    public struct Bytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias Failure = LoadError

        let body: ResponseBody

        public func makeAsyncIterator() -> Iterator { Iterator(chunks: body.makeAsyncIterator()) }

        /// The iterator of the sequence.
        public struct Iterator: AsyncIteratorProtocol {
            var chunks: ResponseBody.Iterator
            private var chunk: Chunk?
            private var position = 0

            init(chunks: ResponseBody.Iterator) { self.chunks = chunks }

            /// The next byte; `nil` at the end.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> UInt8? {
                if chunk == nil || chunk?.count == position {
                    chunk = try await chunks.next(isolation: actor)
                    position = 0
                }
                defer { position += 1 }
                return chunk?.storage.bytes(chunk?.range ?? 0..<0)[position]
            }

            /// The next byte; `nil` at the end.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next() async throws(LoadError) -> UInt8? { try await next(isolation: nil) }
        }
    }
}

/// Splits chunks into lines. A line whose ending is in the current chunk is returned at once, without the next chunk.
struct LineSplitter: Sendable {
    let limit: Int
    private var chunk: Chunk?
    private var position = 0
    /// The beginning of a line whose ending was not received yet.
    private var beginning: [UInt8] = []
    /// True if the last line ended with CR, so that a following LF belongs to that line ending.
    private var skipsLF = false

    private static let lf = UInt8(ascii: "\n"), cr = UInt8(ascii: "\r")

    init(limit: Int) { self.limit = limit }

    mutating func feed(_ chunk: Chunk) {
        self.chunk = chunk
        position = 0
    }

    /// Returns the next complete line; `nil` if more chunks are required.
    mutating func next() throws(LoadError) -> String? {
        guard let chunk else { return nil }
        let bytes = UnsafeRawBufferPointer(chunk.storage.bytes(chunk.range))
        if skipsLF, position < bytes.count {
            skipsLF = false
            if bytes[position] == Self.lf { position += 1 }
        }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
        let end = rest.firstIndex { $0 == Self.lf || $0 == Self.cr }
        guard beginning.count + (end ?? rest.count) <= limit else { throw .lineTooLong(limit) }
        guard let end else {
            beginning += rest
            self.chunk = nil
            return nil
        }
        skipsLF = rest[end] == Self.cr
        position += end + 1
        let line = UnsafeRawBufferPointer(rebasing: rest[..<end])
        guard !beginning.isEmpty else { return String(decoding: line, as: UTF8.self) }
        defer { beginning = [] }
        return String(decoding: beginning + line, as: UTF8.self)
    }

    /// Returns the last line if the body ended without a line ending.
    mutating func end() -> String? {
        guard !beginning.isEmpty else { return nil }
        defer { beginning = [] }
        return String(decoding: beginning, as: UTF8.self)
    }
}

extension LoadError {
    fileprivate static func lineTooLong(_ limit: Int) -> LoadError {
        LoadError(.bodyTooLarge, phase: .receiving, party: .local, detail: "a line of more than \(limit) bytes")
    }
}
