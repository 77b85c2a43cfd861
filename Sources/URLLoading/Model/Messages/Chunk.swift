// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A piece of a body: bytes in a buffer that is shared, not copied.
///
/// A chunk may be kept and passed on; while one is held its buffer is not reused, so keep chunks for
/// as short as you can, and copy (`Data(chunk)`) bytes that must be kept.
///
/// ```swift
/// for try await chunk in body {
///     chunk.withBytes { bytes in checksum.update(bytes) }
/// }
/// ```
public struct Chunk: Sendable {
    let storage: ChunkStorage
    let range: Range<Int>

    /// The number of bytes, at least 1.
    public var count: Int { range.count }

    /// A copy of some bytes.
    init(copying bytes: UnsafeRawBufferPointer) {
        storage = ChunkStorage(capacity: max(1, bytes.count))
        range = 0..<bytes.count
        if let start = bytes.baseAddress { storage.base.copyMemory(from: start, byteCount: bytes.count) }
    }

    init(storage: ChunkStorage, range: Range<Int>) {
        // Readers of a chunk do not check its range again, and a range beyond the buffer would expose foreign memory.
        precondition(range.lowerBound >= 0 && range.upperBound <= storage.capacity)
        self.storage = storage
        self.range = range
    }

    /// Returns the bytes as two chunks, without a copy.
    func split(at count: Int) -> (Chunk, Chunk) {
        let cut = range.lowerBound + count
        return (
            Chunk(storage: storage, range: range.lowerBound..<cut),
            Chunk(storage: storage, range: cut..<range.upperBound)
        )
    }

    /// Calls `use` with the bytes, which are valid during the call only.
    public func withBytes<R, E: Error>(_ use: (RawSpan) throws(E) -> R) throws(E) -> R {
        try use(unsafe RawSpan(_unsafeBytes: storage.bytes(range)))
    }

}

extension Chunk: ContiguousBytes {
    public func withUnsafeBytes<R>(_ use: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try use(storage.bytes(range))
    }
}

extension Data {
    /// A copy of the bytes.
    public init(_ chunk: Chunk) {
        self = chunk.withUnsafeBytes { Data($0) }
    }

    /// Appends a copy of the bytes.
    public mutating func append(_ chunk: Chunk) {
        chunk.withUnsafeBytes { self.append(contentsOf: $0) }
    }
}

extension [UInt8] {
    /// A copy of the bytes.
    public init(_ chunk: Chunk) {
        self = chunk.withUnsafeBytes { [UInt8]($0) }
    }
}

/// The buffer that chunks refer to. Only the connection writes to it, and only while no chunk refers to it.
final class ChunkStorage: Sendable {
    // Unsafe: the owner of the storage writes, and readers of chunks see only what is not written any more.
    nonisolated(unsafe) let base: UnsafeMutableRawPointer
    let capacity: Int
    /// The budget in which the buffer counts; nil for none.
    private let budget: MemoryBudget?

    init(capacity: Int, of budget: MemoryBudget? = nil) {
        self.capacity = capacity
        self.budget = budget
        // Plain malloc: pages that are never touched cost nothing.
        base = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        base.deallocate()
        budget?.giveBack(capacity)
    }

    /// - Parameter range: the range of a chunk, or of received bytes.
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        assert(range.lowerBound >= 0 && range.upperBound <= capacity)
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    func room(from start: Int) -> UnsafeMutableRawBufferPointer {
        assert(start >= 0 && start <= capacity)
        return UnsafeMutableRawBufferPointer(start: base + start, count: capacity - start)
    }
}
