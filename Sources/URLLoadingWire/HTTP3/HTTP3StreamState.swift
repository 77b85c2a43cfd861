// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNghttp3

/// The codec's state of one request.
final class HTTP3StreamState {
    // The response.
    /// The head or trailer section being received.
    var section = HTTP3Section()
    var informationalCount = 0
    var hasHead = false
    var trailers = Headers()
    var isComplete = false
    /// True once the last byte of the response was passed to nghttp3, which may have to wait for the table of
    /// compression.
    var hasReceivedAll = false
    /// Whether the peer has begun to answer, and so to process the request.
    var hasBegun: Bool { hasHead || informationalCount > 0 }

    // The request's body.
    var hasEnded = false
    var endingTrailers: HTTP2FieldList?
    /// True while nghttp3 waits to be told that there is more data.
    var isDeferred = false
    let body = HTTP3SendQueue()
}

/// The fields of a section, and its size as defined in RFC 9114 §4.2.2.
struct HTTP3Section {
    var status: Status?
    var headers = Headers()
    var size = 0
}

/// The bytes of a stream, such as a request's body, which stay at their place until the peer has acknowledged them.
package final class HTTP3SendQueue {
    private var pieces: [UnsafeMutableRawBufferPointer] = []
    /// The pieces before this one were released.
    private var first = 0
    /// The bytes of the first piece that were acknowledged.
    private var acknowledged = 0
    /// The next piece to lend, and the bytes of it that were lent.
    private var next = 0
    private var lent = 0
    /// The bytes that were not lent yet, and those that are held.
    package private(set) var queued = 0
    package private(set) var held = 0

    package init() {}

    deinit { for piece in pieces[first...] { piece.deallocate() } }

    package func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        piece.copyMemory(from: bytes)
        pieces.append(piece)
        queued += bytes.count
        held += bytes.count
    }

    /// Lends the next bytes, at most `most`.
    package func lend(_ most: Int) -> UnsafeRawBufferPointer? {
        guard next < pieces.count else { return nil }
        let piece = pieces[next]
        let end = min(piece.count, lent + most)
        let bytes = UnsafeRawBufferPointer(rebasing: piece[lent..<end])
        lent = end
        if end == piece.count { (next, lent) = (next + 1, 0) }
        queued -= bytes.count
        return bytes
    }

    /// Frees the pieces of which nothing was lent, and lends no more.
    package func discard() {
        let kept = lent > 0 ? next + 1 : next
        for piece in pieces[kept...] {
            held -= piece.count
            piece.deallocate()
        }
        pieces.removeSubrange(kept...)
        (next, lent, queued) = (kept, 0, 0)
    }

    /// Releases bytes that the peer has received.
    package func release(_ count: Int) {
        acknowledged += count
        held -= count
        while first < pieces.count, acknowledged >= pieces[first].count {
            acknowledged -= pieces[first].count
            pieces[first].deallocate()
            first += 1
        }
        guard first == pieces.count || first >= Self.mostReleased else { return }
        pieces.removeFirst(first)
        (next, first) = (next - first, 0)
    }
    private static let mostReleased = 64
}

#endif
