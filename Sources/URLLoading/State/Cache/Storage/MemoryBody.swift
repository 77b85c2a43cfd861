// SPDX-License-Identifier: Apache-2.0

/// A body in one piece of memory. A cache hit returns the piece without copying it.
final class MemoryBody: StoredBody {
    private let chunk: Chunk

    init(_ chunk: Chunk) { self.chunk = chunk }

    convenience init(_ bytes: [UInt8]) { self.init(bytes.withUnsafeBytes { Chunk(copying: $0) }) }

    var length: Int64 { Int64(chunk.count) }
    var bytes: Chunk? { chunk }

    func read(at offset: Int64, atMost count: Int) -> Chunk? {
        guard offset >= 0, offset <= length else { return nil }
        let rest = chunk.split(at: Int(offset)).1
        return rest.count > count ? rest.split(at: max(0, count)).0 : rest
    }
}

/// A growing body. Pieces are copied into it, because a small piece would keep the connection's whole read buffer of 64
/// KiB and more alive.
struct GrowingBody: Sendable {
    private var storage: ChunkStorage?
    private(set) var count = 0

    /// - Parameter length: the expected length, if known; only a hint.
    init(expecting length: Int = 0) {
        if length > 0 { expect(length) }
    }

    /// Reserves room for the expected length while the body is empty.
    mutating func expect(_ length: Int) {
        if storage == nil, length > 0 { storage = ChunkStorage(capacity: length) }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        room(bytes.count).copyMemory(from: start, byteCount: bytes.count)
        count += bytes.count
    }

    private mutating func room(_ more: Int) -> UnsafeMutableRawPointer {
        if let storage, storage.capacity - count >= more { return storage.base + count }
        return grow(to: max(count + more, 2 * count, 512)).base + count
    }

    private mutating func grow(to capacity: Int) -> ChunkStorage {
        let larger = ChunkStorage(capacity: capacity)
        if let storage { larger.base.copyMemory(from: storage.base, byteCount: count) }
        storage = larger
        return larger
    }

    /// Returns the body. If more than an eighth of the buffer is unused, the bytes are copied to one that fits.
    mutating func take() -> Chunk {
        guard let taken = storage else { return Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0)) }
        defer {
            storage = nil
            count = 0
        }
        guard taken.capacity - count > count / 8 + 64 else { return Chunk(storage: taken, range: 0..<count) }
        return Chunk(copying: taken.bytes(0..<count))
    }
}
