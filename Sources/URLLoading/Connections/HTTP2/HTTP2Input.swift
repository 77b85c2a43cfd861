// SPDX-License-Identifier: Apache-2.0

// The bytes that were received and not consumed. A body piece whose reader is waiting refers to the read buffer, which
// is soon free again. Other pieces are copied, and so are small ones: a reader that takes nothing, or a peer that sends
// single bytes, must not keep many buffers alive. Once a stream's pieces keep one, further pieces in it cost nothing.

import URLLoadingIO
import URLLoadingWire

struct HTTP2Input {
    private let budget: MemoryBudget
    private var storage = ChunkStorage(capacity: HTTP2Input.smallestBuffer)
    private var unread = 0..<0
    private var capacity = HTTP2Input.smallestBuffer
    /// The bytes received since the reader last waited, napped or let other tasks run.
    private(set) var receivedInTurn = 0
    mutating func takeReceivedInTurn() -> Int {
        defer { receivedInTurn = 0 }
        return receivedInTurn
    }

    /// Larger than a frame of the maximum size, because frames are consumed completely.
    private static let smallestBuffer = 32 * 1024
    private static let largestBuffer = 256 * 1024
    /// Pieces of bodies smaller than this are copied.
    private static let smallPiece = 4096

    init(budget: MemoryBudget = .reading) { self.budget = budget }

    var bytes: UnsafeRawBufferPointer { storage.bytes(unread) }

    func last(_ count: Int) -> UnsafeRawBufferPointer { storage.bytes(unread.upperBound - count..<unread.upperBound) }

    /// - Parameters:
    ///   - isAwaited: the stream's reader will take the piece as soon as it runs.
    ///   - lent: the buffer that untaken pieces of the stream refer to; `nil` for none.
    func chunk(_ range: Range<Int>, isAwaited: Bool, beside lent: inout ObjectIdentifier?) -> Chunk {
        let place = unread.lowerBound + range.lowerBound..<unread.lowerBound + range.upperBound
        let isLent = lent == ObjectIdentifier(storage)
        let least = isAwaited && lent == nil ? Self.smallPiece : max(Self.smallPiece, storage.capacity / 2)
        guard isLent || range.count >= least else { return Chunk(copying: storage.bytes(place)) }
        lent = ObjectIdentifier(storage)
        return Chunk(storage: storage, range: place)
    }

    mutating func received(_ count: Int, filled: Bool) {
        unread = unread.lowerBound..<unread.upperBound + count
        receivedInTurn += count
        if filled { capacity = min(capacity * 2, Self.largestBuffer) }
    }

    mutating func consume(_ count: Int) { unread = unread.lowerBound + count..<unread.upperBound }

    /// Returns room after the unread bytes, at least for the missing part of a frame.
    mutating func makeRoom() -> UnsafeMutableRawBufferPointer {
        let isUnique = isKnownUniquelyReferenced(&storage)
        if isUnique, unread.isEmpty { unread = 0..<0 }
        if isUnique, storage.capacity >= capacity, unread.upperBound < storage.capacity {
            return storage.room(from: unread.upperBound)
        }
        let new =
            isUnique && storage.capacity >= capacity ? storage : buffer(capacity: max(capacity, unread.count * 2))
        new.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count)
        unread = 0..<unread.count
        storage = new
        return new.room(from: unread.upperBound)
    }

    /// Returns a buffer of this size; a smaller one if the large buffers of the process use up their memory. The
    /// unread bytes fit.
    private mutating func buffer(capacity needed: Int) -> ChunkStorage {
        guard needed > Self.smallestBuffer else { return ChunkStorage(capacity: needed) }
        if let large = budget.buffer(capacity: needed) { return large }
        capacity = Self.smallestBuffer
        return ChunkStorage(capacity: max(Self.smallestBuffer, unread.count * 2))
    }
}

/// Input that was read from the socket and not yet delivered to the streams. Used by the reader only.
struct HTTP2Incoming {
    var input = HTTP2Input()
    /// The reader must read before it waits: the transport may hold more than was read, or the wait has ended.
    var mustRead = false
    /// The event that the last read waits for: TLS may have to write before it can read.
    var blockedOn = PollSlot.Interest.read
    var lines = HTTP2Codec.Watch()
    /// The number of times that the reader went on to read after its idle timeout.
    var lateReads = 0
    /// Reads of 16 KiB or more, where a peer sends without a pause: more than a socket holds.
    static let maximumLateReads = 1_024
}
