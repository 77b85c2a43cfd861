// What has come of a multipart body and was not taken yet: a chunk as it came, or, where a delimiter or
// the fields of a part are spread over several, a buffer in which they lie behind each other.

import URLLoadingWire

struct PartInput {
    private var storage: ChunkStorage?
    private var start = 0
    private var end = 0
    /// The buffer is ours, and nobody knows what lies behind `end`.
    private var isOwn = false

    /// Room for small pieces that follow, so that fields which come byte by byte are not copied each time.
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

    /// Twice as much as is kept: a buffer is filled by as many bytes as were copied to make it.
    private mutating func gather(_ old: ChunkStorage, _ count: Int) {
        let kept = old.bytes(start..<end)
        let own = ChunkStorage(capacity: 2 * kept.count + count + Self.room)
        own.room(from: 0).copyMemory(from: kept)
        (storage, start, end, isOwn) = (own, 0, kept.count, true)
    }

    /// The next event of what is here; its range counts from ``chunk(_:)``'s own beginning.
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

    /// The bytes of a range that the last event named. Not copied: nothing is written there again.
    mutating func chunk(_ range: Range<Int>) -> Chunk {
        // What is used up is the connection's again once the chunk has gone.
        defer { if start == end { storage = nil } }
        return Chunk(storage: storage ?? ChunkStorage(capacity: 1), range: range)
    }
}
