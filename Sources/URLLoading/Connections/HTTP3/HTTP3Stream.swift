// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingIO
import URLLoadingWire

/// Connects the driver of a connection with the task of a stream. Guarded by the connection's lock, except for the
/// slot.
final class HTTP3Stream: @unchecked Sendable {
    // Unchecked: guarded by the connection's lock.
    /// The slot in which the stream's task waits.
    let slot: PollSlot
    var urgency: Int
    /// Negative before the stream has begun.
    var number: Int64 = -1
    var inbox = HTTP2Inbox()
    /// The bytes of the body that are not a chunk of the inbox yet.
    private var gathering: (storage: ChunkStorage, taken: Int, filled: Int)?
    /// The bytes that the reader has taken, and for which the peer was given no new credit yet.
    var uncredited = 0
    /// An event has not been seen by the stream's task yet.
    var hasUnseenEvents = false
    /// The stream's task waits on `slot`.
    var isWaiting = false
    /// The stream's task waits until the peer has acknowledged a part of the request's body.
    var isHeldBack = false
    /// The response is complete.
    var isComplete = false
    var hasSentAll: Bool
    /// The codec does not know the stream any more.
    var isOver = false
    /// The request of the stream's load that may have been sent as early data, before the load has begun it.
    var early: EarlyRequest?
    /// The server has accepted the request as early data.
    private(set) var wasEarly = false

    init(slot: PollSlot, urgency: Int, hasBody: Bool) {
        self.slot = slot
        self.urgency = urgency
        hasSentAll = !hasBody
    }

    /// Takes over what has arrived for the request of this stream, which was sent as early data.
    func adopt(_ other: HTTP3Stream) {
        (number, urgency, inbox, gathering) = (other.number, other.urgency, other.inbox, other.gathering)
        (isComplete, isOver, hasSentAll) = (other.isComplete, other.isOver, other.hasSentAll)
        (wasEarly, hasUnseenEvents) = (true, true)
    }

    /// Packets carry little, so the pieces of a body are gathered in buffers of this size.
    private static let bufferSize = 32 * 1024

    /// Copies a piece of the body.
    func append(_ bytes: UnsafeRawBufferPointer) {
        inbox.dataCount += bytes.count
        var rest = bytes
        while !rest.isEmpty {
            var current = gathering ?? (ChunkStorage(capacity: max(rest.count, Self.bufferSize)), 0, 0)
            let count = min(rest.count, current.storage.capacity - current.filled)
            current.storage.room(from: current.filled).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            current.filled += count
            gathering = current
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if current.filled == current.storage.capacity { closeChunk() }
        }
    }

    /// Moves the gathered bytes to the inbox. What follows is written behind them, where no chunk refers to.
    func closeChunk() {
        guard var current = gathering else { return }
        if current.filled > current.taken {
            inbox.chunks.append(Chunk(storage: current.storage, range: current.taken..<current.filled))
        }
        current.taken = current.filled
        // A small piece must not keep a large buffer alive for long.
        gathering = current.filled > current.storage.capacity / 2 ? nil : current
    }
}

#endif
