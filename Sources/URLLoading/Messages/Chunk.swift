public import FoundationEssentials

/// A piece of a body: bytes in a buffer that is shared, not copied.
///
/// A chunk may be kept and passed on; while one is held its buffer is not reused, so keep chunks for
/// as short as you can and copy (``Foundation/Data/init(_:)-chunk``) what must stay.
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
        // Nothing that reads a chunk looks again: one beyond its buffer would be other people's memory.
        precondition(range.lowerBound >= 0 && range.upperBound <= storage.capacity)
        self.storage = storage
        self.range = range
    }

    /// The same bytes as two chunks.
    func split(at count: Int) -> (Chunk, Chunk) {
        let cut = range.lowerBound + count
        return (
            Chunk(storage: storage, range: range.lowerBound..<cut),
            Chunk(storage: storage, range: cut..<range.upperBound)
        )
    }

    /// Lends the bytes for the length of the call.
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

/// The buffer under chunks. Written only by the connection, and only while no chunk refers to it.
final class ChunkStorage: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        // Plain malloc: pages that are never touched cost nothing.
        base = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    /// - Parameter range: of a chunk, or of what was received.
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        assert(range.lowerBound >= 0 && range.upperBound <= capacity)
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    func room(from start: Int) -> UnsafeMutableRawBufferPointer {
        assert(start >= 0 && start <= capacity)
        return UnsafeMutableRawBufferPointer(start: base + start, count: capacity - start)
    }
}
