// SPDX-License-Identifier: Apache-2.0

// Capabilities of this package's handlers beyond the public API: reading the body of a request, and forwarding a
// response with another body.

package import FoundationEssentials
package import URLLoadingIO
package import URLLoadingWire

extension ProtocolClient {
    /// The clock of the load's session.
    package var clock: LoopClock { load.clock }
}

extension ProtocolResponse {
    /// The request to which another handler redirects the load.
    package var redirect: Request? { exchange.redirect }

    /// Returns this response with another body.
    /// - Parameter trailers: called when the body has ended. Must not hold the response, which is released together
    ///   with the body.
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
    /// The bytes of a body in memory.
    package var heldData: Data? { if case .data(let data) = content { data } else { nil } }
    /// The file, if the body is one whole file.
    package var file: URL? {
        guard case .parts(let parts) = content, parts.count == 1, case .file(let path, nil)? = parts.first else {
            return nil
        }
        return URL(filePath: path)
    }
    /// True if ``Decisions/bodyProvider`` supplies the body.
    package var isDemanded: Bool { if case .provided = content { true } else { false } }

    /// Calls `use` with each piece in turn. A sequence is created anew.
    package func forEachPiece(_ use: (UnsafeRawBufferPointer) -> Void) async throws {
        switch content {
        case .data(let data): data.withUnsafeBytes(use)
        case .parts(let parts):
            for try await piece in PartPieces(parts: parts) { piece.withUnsafeBytes(use) }
        case .stream(_, _, let make):
            let pieces = make()
            while let piece = try await pieces.next() { piece.withBytes(use) }
        case .provided: break
        }
    }

    /// Returns this body with observers of its pieces.
    /// - Parameters:
    ///   - begin: called each time the body is opened; it may have to be sent again.
    ///   - piece: called with each piece before it is sent.
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
            next.withBytes(piece)
            return next.chunk
        }
    }
}
