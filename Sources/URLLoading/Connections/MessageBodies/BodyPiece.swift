// SPDX-License-Identifier: Apache-2.0

// Pieces of a body as they are received.

enum BodyPiece {
    case chunk(Chunk)
    case end
}

/// The received bytes of an exchange that its reader has not taken.
struct PendingChunk {
    var chunk: Chunk?

    /// Removes and returns up to `most` bytes; `nil` if there are none or `most` is 0.
    mutating func take(atMost most: Int) -> BodyPiece? {
        guard let chunk, most > 0 else { return nil }
        guard chunk.count > most else {
            self.chunk = nil
            return .chunk(chunk)
        }
        let (first, rest) = chunk.split(at: most)
        self.chunk = rest
        return .chunk(first)
    }
}
