// What handlers of this package may do beyond the public seam: read the body of a request, and answer
// with what others answered but for its body.

package import FoundationEssentials
package import URLLoadingIO
package import URLLoadingWire

extension ProtocolClient {
    /// Whose time the load's session takes.
    package var clock: LoopClock { load.clock }
}

extension ProtocolResponse {
    /// Where another handler wants the load to go on.
    package var redirect: Request? { exchange.redirect }

    /// The same answer with another body.
    /// - Parameter trailers: asked for when the body has ended. Must not hold what is answered: that is let
    ///   go of together with the body.
    package func with<S: AsyncSequence & Sendable>(
        body: S, trailers: @escaping @Sendable () -> Headers
    ) -> ProtocolResponse where S.Element: ContiguousBytes {
        let pieces = AnyChunkIterator(body)
        let exchange = HandlerExchange(response, pieces, redirect: redirect, trailers: trailers)
        exchange.isForwarded = true
        return ProtocolResponse(exchange)
    }
}

extension RequestBody {
    /// The bytes, if they are held.
    package var heldData: Data? { if case .data(let data) = content { data } else { nil } }
    /// The file, if all of one is sent and nothing else.
    package var file: URL? {
        guard case .parts(let parts) = content, parts.count == 1, case .file(let path, nil)? = parts.first else {
            return nil
        }
        return URL(filePath: path)
    }
    /// A decision is asked for it.
    package var isDemanded: Bool { if case .provided = content { true } else { false } }

    /// Lends each piece in turn. A body of a sequence asks for a fresh one.
    package func forEachPiece(_ use: (UnsafeRawBufferPointer) -> Void) async throws {
        switch content {
        case .data(let data): data.withUnsafeBytes(use)
        case .parts(let parts):
            for try await piece in PartPieces(parts: parts) { piece.withUnsafeBytes(use) }
        case .stream(_, _, let make):
            let pieces = make()
            while let piece = try await pieces.next() { piece.withUnsafeBytes(use) }
        case .provided: break
        }
    }

    /// The same body, whose pieces are shown on their way out.
    /// - Parameters:
    ///   - begin: called each time the body is asked for: it may have to be sent again.
    ///   - piece: called for each piece before it is sent.
    package func watched(
        begin: @escaping @Sendable () -> Void, piece: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) -> RequestBody {
        switch content {
        case .data(let data):
            begin()
            data.withUnsafeBytes(piece)
            return self
        case .provided: return self
        case .parts(let parts):
            let length = parts.map(\.currentLength).reduce(0 as Int64?) { sum, length in
                length.flatMap { l in sum.map { $0 + l } }
            }
            return RequestBody(
                .stream(length: length, trailers: nil) {
                    begin()
                    return AnyChunkIterator(
                        WatchedPieces(pieces: AnyChunkIterator(PartPieces(parts: parts)), piece: piece))
                }, contentType: contentType)
        case .stream(let length, let trailers, let make):
            return RequestBody(
                .stream(length: length, trailers: trailers) {
                    begin()
                    return AnyChunkIterator(WatchedPieces(pieces: make(), piece: piece))
                }, contentType: contentType)
        }
    }
}

private struct WatchedPieces: AsyncSequence {
    let pieces: AnyChunkIterator
    let piece: @Sendable (UnsafeRawBufferPointer) -> Void
    func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces, piece: piece) }

    struct Iterator: AsyncIteratorProtocol {
        let pieces: AnyChunkIterator
        let piece: @Sendable (UnsafeRawBufferPointer) -> Void
        mutating func next() async throws -> Chunk? {
            guard let next = try await pieces.next() else { return nil }
            next.withUnsafeBytes(piece)
            return next
        }
    }
}
