// SPDX-License-Identifier: Apache-2.0

/// The bytes that a connection has received and not consumed. Delivered chunks refer to the buffer; it is not reused
/// while they do, and only unconsumed bytes are copied.
struct ReceiveBuffer {
    /// The unconsumed bytes are the range `unread` of `storage`.
    private var storage: ChunkStorage?
    private(set) var unread = 0..<0
    /// The next buffer's size: it grows while reads fill what they are given.
    private var capacity = ReceiveBuffer.smallest
    private let largest: Int

    /// Fits heads and small bodies; for large ones the buffer grows to the largest size within two reads.
    static let smallest = ReadBuffers.small.size

    /// - Parameter largest: the largest size in bytes.
    init(largest: Int) { self.largest = largest }

    var bytes: UnsafeRawBufferPointer { storage?.bytes(unread) ?? UnsafeRawBufferPointer(start: nil, count: 0) }

    mutating func consume(_ count: Int) { unread = unread.lowerBound + count..<unread.upperBound }

    /// Notes that bytes were written to the room.
    /// - Parameter grows: whether they filled it.
    mutating func received(_ count: Int, grows: Bool) {
        unread = unread.lowerBound..<unread.upperBound + count
        if grows { capacity = min(capacity * 4, largest) }
    }

    /// The bytes of a range that begins at `base` in the buffer.
    func chunk(_ range: Range<Int>, at base: Int) -> Chunk? {
        storage.map { Chunk(storage: $0, range: base + range.lowerBound..<base + range.upperBound) }
    }

    /// The bytes that were received last.
    func last(_ count: Int) -> [UInt8] { [UInt8](bytes.suffix(count)) }

    /// Returns the unconsumed bytes, which the connection will not see again.
    mutating func takeUnread() -> Chunk? {
        defer { (storage, unread) = (nil, 0..<0) }
        return unread.isEmpty ? nil : chunk(0..<unread.count, at: unread.lowerBound)
    }

    /// Releases the buffer, if it holds no bytes.
    mutating func release() {
        capacity = Self.smallest
        guard unread.isEmpty else { return }
        if isKnownUniquelyReferenced(&storage), let storage { ReadBuffers.small.giveBack(storage) }
        // Offsets into the released buffer have no meaning in the next one.
        (storage, unread) = (nil, 0..<0)
    }

    /// Returns room after the unread bytes.
    mutating func makeRoom() -> UnsafeMutableRawBufferPointer {
        if isKnownUniquelyReferenced(&storage), let storage, storage.capacity >= capacity {
            if unread.isEmpty { unread = 0..<0 }
            if unread.upperBound < storage.capacity { return storage.room(from: unread.upperBound) }
            if unread.lowerBound > 0 {
                storage.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count)
                unread = 0..<unread.count
                return storage.room(from: unread.upperBound)
            }
        }
        // The codec bounds the unconsumed bytes, and thereby the size of this buffer.
        let new = buffer(capacity: max(capacity, unread.count * 2))
        if let storage { new.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count) }
        unread = 0..<unread.count
        storage = new
        return new.room(from: unread.upperBound)
    }

    /// Returns a buffer of this size; a smaller one if the large buffers of the process use up their memory. The
    /// unread bytes fit.
    private mutating func buffer(capacity needed: Int) -> ChunkStorage {
        if needed == Self.smallest { return ReadBuffers.small.take() }
        if let large = MemoryBudget.reading.buffer(capacity: needed) { return large }
        capacity = Self.smallest
        let least = max(capacity, unread.count * 2)
        return least == Self.smallest ? ReadBuffers.small.take() : ChunkStorage(capacity: least)
    }
}
