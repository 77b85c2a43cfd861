// Bytes received and not consumed. Pieces of bodies whose reader waits for them refer to the buffer they were read into,
// which is soon free again. Other pieces are copied, as are small ones: a reader that takes nothing, or a peer that sends
// single bytes, must not make each of them keep a whole buffer.

import URLLoadingIO
import URLLoadingWire

struct HTTP2Input {
    private var storage = ChunkStorage(capacity: HTTP2Input.smallestBuffer)
    private var unread = 0..<0
    private var capacity = HTTP2Input.smallestBuffer
    /// Since the reader last waited.
    var receivedInTurn = 0

    /// More than one frame of the largest size: frames are consumed whole.
    private static let smallestBuffer = 32 * 1024
    private static let largestBuffer = 256 * 1024
    /// Pieces of bodies smaller than this are copied.
    private static let smallPiece = 4096

    var bytes: UnsafeRawBufferPointer { storage.bytes(unread) }

    func last(_ count: Int) -> UnsafeRawBufferPointer { storage.bytes(unread.upperBound - count..<unread.upperBound) }

    /// - Parameters:
    ///   - isAwaited: its reader takes it as soon as he runs.
    ///   - earlier: what lies before him already: with so many bytes of this buffer, more of it cost nothing.
    func chunk(_ range: Range<Int>, isAwaited: Bool, after earlier: Chunk?) -> Chunk {
        let place = unread.lowerBound + range.lowerBound..<unread.lowerBound + range.upperBound
        let isLent = isAwaited && (earlier == nil || earlier?.storage === storage)
        guard range.count >= (isLent ? Self.smallPiece : max(Self.smallPiece, storage.capacity / 2)) else {
            return Chunk(copying: storage.bytes(place))
        }
        return Chunk(storage: storage, range: place)
    }

    mutating func received(_ count: Int, filled: Bool) {
        unread = unread.lowerBound..<unread.upperBound + count
        receivedInTurn += count
        if filled { capacity = min(capacity * 2, Self.largestBuffer) }
    }

    mutating func consume(_ count: Int) { unread = unread.lowerBound + count..<unread.upperBound }

    /// Room behind what is unread, for at least what is missing of a frame.
    mutating func makeRoom() -> UnsafeMutableRawBufferPointer {
        let isOurs = isKnownUniquelyReferenced(&storage)
        if isOurs, unread.isEmpty { unread = 0..<0 }
        if isOurs, storage.capacity >= capacity, unread.upperBound < storage.capacity {
            return storage.room(from: unread.upperBound)
        }
        let new =
            isOurs && storage.capacity >= capacity ? storage : ChunkStorage(capacity: max(capacity, unread.count * 2))
        new.base.copyMemory(from: storage.base + unread.lowerBound, byteCount: unread.count)
        unread = 0..<unread.count
        storage = new
        return new.room(from: unread.upperBound)
    }
}

/// Bytes on their way from the socket to the streams. Used by the reader alone.
struct HTTP2Incoming {
    var input = HTTP2Input()
    /// The socket may hold more than was read.
    var mustRead = false
    /// What the last read waits for: TLS may have to write before it can read.
    var blockedOn = PollSlot.Interest.read
    var lines = HTTP2Codec.Watch()
}
