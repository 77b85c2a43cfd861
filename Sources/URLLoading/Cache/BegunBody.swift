// A stored body whose first piece was read before anything is answered: of one that is damaged there another can still be
// loaded, and nobody notices.

import URLLoadingIO

extension StoredBody {
    /// With what is wanted of it first in memory; all of it, if it is not longer than `most`. `nil` if that is damaged. Blocks,
    /// unless it is in memory.
    func begun(at offset: Int64, wholeUpTo most: Int64) -> (any StoredBody)? {
        if bytes != nil || offset >= length { return self }
        if length <= most { return whole.map { MemoryBody($0) } }
        guard let first = read(at: offset, atMost: 128 * 1024), first.count > 0 else { return nil }
        return BegunBody(self, first, at: offset)
    }

    /// What was read of it from an offset.
    func ahead(from offset: Int64) -> Chunk? {
        guard let begun = self as? BegunBody, begun.offset == offset else { return nil }
        return begun.first
    }
}

final class BegunBody: StoredBody {
    fileprivate let first: Chunk
    fileprivate let offset: Int64
    private let body: any StoredBody

    init(_ body: any StoredBody, _ first: Chunk, at offset: Int64) {
        (self.body, self.first, self.offset) = (body, first, offset)
    }

    var length: Int64 { body.length }
    var bytes: Chunk? { nil }
    func read(at offset: Int64, atMost most: Int) -> Chunk? { body.read(at: offset, atMost: most) }
}
