// SPDX-License-Identifier: Apache-2.0

// The steps of a response body between its source and its reader: digests, content coding, pieces no larger than
// the reader asks for, the byte count of the metrics. Exchanges of both versions of HTTP pull from their connection
// through it; an ftp exchange and a stored response add what they have read.

import URLLoadingWire

struct BodyPipeline {
    /// Decodes the content coding; `nil` if the body has none.
    private var decoding: BodyDecoding?
    /// The server's digest proofs, which are checked against the coded body.
    private var proofs: [DigestProof] = []
    /// The check of the digests that the response states of the coded body (RFC 9530); `nil` without any.
    private var check: DigestCheck?
    /// Bytes that the reader has not taken.
    private var pending = PendingChunk()
    /// True after the last piece, or after the end of the exchange.
    private(set) var hasEnded = false

    var isDecoding: Bool { decoding != nil }
    /// True if the reader has not taken all bytes that have left the source.
    var hasPending: Bool { pending.chunk != nil }

    mutating func prove(_ proof: DigestProof) { proofs.append(proof) }
    mutating func check(_ check: DigestCheck?) { self.check = check }

    /// Begins to decode the content coding of a response, if it has one that is supported.
    mutating func decode(_ headers: Headers, _ limits: Configuration.Limits) throws(LoadError) {
        decoding = try BodyDecoding.make(headers, limits)
    }

    /// Adds bytes that need no decoding. The previous ones have been taken.
    mutating func add(_ chunk: Chunk) { pending.chunk = chunk }

    /// Returns the next piece for the reader; `nil` if the source must receive more.
    /// - Parameters:
    ///   - most: the maximum size of the piece; 0 only checks for the end.
    ///   - record: counts the piece.
    ///   - trailers: returns the trailer fields; called at the end of a body that may have digests there.
    ///   - source: returns the next piece as it was received.
    mutating func next(
        atMost most: Int, _ record: TransactionRecord?, trailers: () -> Headers = { Headers() },
        from source: () throws(LoadError) -> BodyPiece?
    ) throws(LoadError) -> BodyPiece? {
        guard !hasEnded else { return .end }
        var piece = pending.take(atMost: most)
        if piece == nil, pending.chunk == nil {
            piece = try decoded(trailers, source)
            // The usual piece fits, and passes through.
            if case .chunk(let chunk)? = piece, chunk.count > most {
                pending.chunk = chunk
                piece = pending.take(atMost: most)
            }
        }
        switch piece {
        case .chunk(let chunk)?: record?.decoded += Int64(chunk.count)
        case .end?:
            hasEnded = true
            record?.mark(.responseEnd)
        case nil: break
        }
        return piece
    }

    private func decoded(
        _ trailers: () -> Headers, _ source: () throws(LoadError) -> BodyPiece?
    ) throws(LoadError) -> BodyPiece? {
        guard let decoding else { return try proved(trailers, source) }
        while true {
            if let chunk = try decoding.next() { return .chunk(chunk) }
            switch try proved(trailers, source) {
            case .chunk(let input)?: decoding.feed(input)
            case .end?:
                try decoding.finish()
                return .end
            case nil: return nil
            }
        }
    }

    private func proved(
        _ trailers: () -> Headers, _ source: () throws(LoadError) -> BodyPiece?
    ) throws(LoadError) -> BodyPiece? {
        let piece = try source()
        if !proofs.isEmpty { try proofs.process(piece) }
        if let check { try check.process(piece, trailers) }
        return piece
    }

    /// Ends the body: its rest is not delivered.
    mutating func end() {
        hasEnded = true
        (decoding, pending.chunk) = (nil, nil)
    }
}
