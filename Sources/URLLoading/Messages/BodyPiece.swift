// Pieces of a body as they are received.

import URLLoadingIO

enum BodyPiece {
    case chunk(Chunk)
    case end
}

/// What an exchange has and nobody has taken.
struct PendingChunk {
    var chunk: Chunk?

    /// As much of it as is wanted; `nil` if nothing is here, or wanted.
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

extension LoadError {
    static func tooLarge(_ limit: Int) -> LoadError {
        LoadError(.bodyTooLarge, phase: .receiving, party: .local, detail: "more than \(limit) bytes")
    }
}
