// SPDX-License-Identifier: Apache-2.0

// The received and unparsed bytes of a multipart body: a chunk as it was received, or a buffer that joins several
// chunks, if a delimiter or the fields of a part extend over them.

import URLLoadingWire

struct PartInput {
    private var storage: ChunkStorage?
    private var start = 0
    private var end = 0
    /// True if the buffer belongs to this input, so that bytes may be appended after `end`.
    private var isOwn = false

    /// Spare capacity for small pieces, so that fields that arrive byte by byte are not copied each time.
    private static let room = 4096

    mutating func add(_ chunk: Chunk) {
        guard let storage, start < end else {
            (self.storage, start, end, isOwn) = (chunk.storage, chunk.range.lowerBound, chunk.range.upperBound, false)
            return
        }
        if !isOwn || storage.capacity - end < chunk.count { gather(storage, chunk.count) }
        guard let own = self.storage else { return }
        own.room(from: end).copyMemory(from: chunk.storage.bytes(chunk.range))
        end += chunk.count
    }

    /// Copies into a buffer of twice the size, so that the cost of copying is amortised.
    private mutating func gather(_ old: ChunkStorage, _ count: Int) {
        let kept = old.bytes(start..<end)
        let own = ChunkStorage(capacity: 2 * kept.count + count + Self.room)
        own.room(from: 0).copyMemory(from: kept)
        (storage, start, end, isOwn) = (own, 0, kept.count, true)
    }

    /// Returns the next event of the buffered bytes. Its range is relative to the storage of ``chunk(_:)``.
    mutating func next(_ reader: inout MultipartReader) throws(LoadError) -> MultipartEvent? {
        let bytes = storage?.bytes(start..<end) ?? UnsafeRawBufferPointer(start: nil, count: 0)
        var consumed = 0
        defer { start += consumed }
        let event: MultipartEvent?
        do throws(WireViolation) { event = try reader.next(bytes, consumed: &consumed) } catch {
            throw LoadError(error, .receiving)
        }
        guard case .data(let range)? = event else { return event }
        return .data(start + range.lowerBound..<start + range.upperBound)
    }

    /// Returns the bytes of the last event's range. Not copied, because these bytes are never overwritten.
    mutating func chunk(_ range: Range<Int>) -> Chunk {
        // Without this reference the connection may reuse a consumed buffer as soon as its chunks are released.
        defer { if start == end { storage = nil } }
        return Chunk(storage: storage ?? ChunkStorage(capacity: 1), range: range)
    }
}
