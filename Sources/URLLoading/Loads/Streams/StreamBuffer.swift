// SPDX-License-Identifier: Apache-2.0

// The bytes that a stream has received and its caller has not taken. Chunks refer to the buffers: nothing is copied
// between the socket and the reader of `input`.

import FoundationEssentials

struct StreamBuffer {
    /// Buffers that are full.
    private var full: [Chunk] = []
    private var storage: ChunkStorage?
    private var unread = 0..<0
    /// The size of the next buffer in bytes. It grows while reads fill their buffers.
    private var capacity = StreamBuffer.smallest
    private(set) var count = 0

    private static let smallest = 16 * 1024
    private static let largest = 256 * 1024

    var isEmpty: Bool { count == 0 }

    init(_ received: Chunk? = nil) {
        guard let received, received.count > 0 else { return }
        full = [received]
        count = received.count
    }

    /// Returns the free space to read into. The caller calls `moved` if bytes were read.
    /// - Parameter most: the maximum number of bytes, at least 1.
    mutating func room(atMost most: Int) -> UnsafeMutableRawBufferPointer {
        let room = writableSpace()
        return room.count > most ? UnsafeMutableRawBufferPointer(rebasing: room[..<most]) : room
    }

    /// Returns the free space of the current buffer, or of a new one if a chunk still refers to the current one.
    private mutating func writableSpace() -> UnsafeMutableRawBufferPointer {
        if isKnownUniquelyReferenced(&storage), let storage {
            if unread.isEmpty, storage.capacity >= capacity { unread = 0..<0 }
            if unread.upperBound < storage.capacity { return storage.room(from: unread.upperBound) }
        }
        if let storage, !unread.isEmpty { full.append(Chunk(storage: storage, range: unread)) }
        let new = ChunkStorage(capacity: capacity)
        storage = new
        unread = 0..<0
        return new.room(from: 0)
    }

    /// Records that `moved` bytes were read into the free space.
    mutating func moved(_ moved: Int, into room: Int) {
        unread = unread.lowerBound..<unread.upperBound + moved
        count += moved
        if moved == room, room >= capacity { capacity = min(capacity * 4, Self.largest) }
    }

    /// Removes and returns the first bytes, without a copy.
    mutating func takeChunk() -> Chunk? {
        guard count > 0 else { return nil }
        let chunk: Chunk
        if !full.isEmpty {
            chunk = full.removeFirst()
        } else if let storage {
            chunk = Chunk(storage: storage, range: unread)
            unread = unread.upperBound..<unread.upperBound
        } else {
            return nil
        }
        count -= chunk.count
        return chunk
    }

    /// Removes and returns a copy of at most `most` bytes.
    mutating func take(atMost most: Int) -> Data {
        var data = Data()
        data.reserveCapacity(min(most, count))
        while data.count < most, let chunk = takeChunk() {
            let wanted = most - data.count
            guard chunk.count > wanted else {
                data.append(chunk)
                continue
            }
            let (first, rest) = chunk.split(at: wanted)
            data.append(first)
            putBack(rest)
        }
        return data
    }

    private mutating func putBack(_ chunk: Chunk) {
        count += chunk.count
        if full.isEmpty, chunk.storage === storage {
            unread = chunk.range
        } else {
            full.insert(chunk, at: 0)
        }
    }
}
