// SPDX-License-Identifier: Apache-2.0

// A stored body whose first piece is read before the response is delivered. If that piece is damaged, the response is
// loaded anew, and the caller does not notice.

extension StoredBody {
    /// Returns the body with the first bytes from `offset` in memory, or with all of it if it is not longer than
    /// `most`; `nil` if these bytes are damaged. Blocks unless the body is in memory.
    func begun(at offset: Int64, wholeUpTo most: Int64) -> (any StoredBody)? {
        if bytes != nil || offset >= length { return self }
        if length <= most { return whole.map { MemoryBody($0) } }
        guard let first = read(at: offset, atMost: 128 * 1024), first.count > 0 else { return nil }
        return PrefetchedBody(self, first, at: offset)
    }

    /// Returns the piece that was read ahead at an offset; nil if none was.
    func ahead(from offset: Int64) -> Chunk? {
        guard let begun = self as? PrefetchedBody, begun.offset == offset else { return nil }
        return begun.first
    }
}

final class PrefetchedBody: StoredBody {
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
