// SPDX-License-Identifier: Apache-2.0

// The pieces of a body that is made of parts, read from memory and files.

public import FoundationEssentials
import URLLoadingIO

/// Iterates the pieces of a body's parts, for consumers other than a socket.
struct PartPieces: AsyncSequence, Sendable {
    let parts: [RequestBody.Part]
    func makeAsyncIterator() -> Iterator { Iterator(rest: parts[...]) }

    struct Iterator: AsyncIteratorProtocol {
        var rest: ArraySlice<RequestBody.Part>
        var file: (reader: FileReader, range: Range<Int64>)?

        mutating func next() async throws(LoadError) -> Chunk? {
            while true {
                if let (reader, range) = file, !range.isEmpty {
                    let storage = ChunkStorage(capacity: Int(Swift.min(Int64(range.count), 256 * 1024)))
                    let count =
                        await BlockingThreads.files.call(.never) {
                            try? reader.read(into: storage.room(from: 0), at: range.lowerBound)
                        } ?? nil
                    guard let count, count > 0 else {
                        throw OutgoingBody.fileChanged(reader.path, missing: range.count)
                    }
                    file = (reader, range.lowerBound + Int64(count)..<range.upperBound)
                    return Chunk(storage: storage, range: 0..<count)
                }
                file = nil
                switch rest.popFirst() {
                case nil: return nil
                case .data(let data)? where data.isEmpty: continue
                case .data(let data)?: return data.withUnsafeBytes { Chunk(copying: $0) }
                case .file(let path, let range)?:
                    file = try await OutgoingBody.open(.file(path: path, range: range), .never)
                }
            }
        }
    }
}

extension RequestBody {
    /// Collects the bytes that would be sent: for handlers and tests that answer in a server's place. A sequence is
    /// created anew; a body of ``Decisions/bodyProvider`` is not known here.
    /// - Parameter limit: the maximum number of bytes to collect, at least 0; ``LoadError/Reason/bodyTooLarge`` beyond.
    /// - Throws: the error of the sequence; ``LoadError`` if a file cannot be read.
    public func collect(upTo limit: Int) async throws -> Data {
        var data = Data()
        switch content {
        case .data(let whole): data = whole
        case .parts(let parts):
            var pieces = PartPieces(parts: parts).makeAsyncIterator()
            while data.count <= limit, let piece = try await pieces.next() { data.append(piece) }
        case .stream(_, _, let make):
            let pieces = make()
            while data.count <= limit, let piece = try await pieces.next() {
                piece.withBytes { data.append(contentsOf: $0) }
            }
        case .provided:
            throw LoadError(
                .bodyUnavailable, phase: .preparing, party: .local, detail: "a part cannot have a .provided body")
        }
        guard data.count <= limit else { throw LoadError.tooLarge(limit) }
        return data
    }
}
