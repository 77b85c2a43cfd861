// SPDX-License-Identifier: Apache-2.0

// Hashes of bodies, for Digest with auth-int and for resumable uploads.

import FoundationEssentials
import URLLoadingIO

extension OutgoingBody {
    /// Hexadecimal digits; nil if a file cannot be read or the load was stopped. Blocks.
    static func hash(of parts: [Part], _ kind: DigestHash, _ token: StopToken) -> String? {
        var running = DigestHash.Running(kind)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        for part in parts {
            switch part {
            case .data(let data):
                for start in stride(from: 0, to: data.count, by: dataPiece) {
                    guard token.stopReason == nil else { return nil }
                    data.withUnsafeBytes {
                        running.update(UnsafeRawBufferPointer(rebasing: $0[start..<min(start + dataPiece, $0.count)]))
                    }
                }
            case .file(let reader, var range):
                while !range.isEmpty {
                    let room = UnsafeMutableRawBufferPointer(
                        rebasing: buffer[..<Int(min(Int64(buffer.count), Int64(range.count)))])
                    guard token.stopReason == nil, let count = try? reader.read(into: room, at: range.lowerBound),
                        count > 0
                    else { return nil }
                    running.update(UnsafeRawBufferPointer(rebasing: room[..<count]))
                    range = range.lowerBound + Int64(count)..<range.upperBound
                }
            }
        }
        return running.finish()
    }

    /// How much of the bytes in memory is hashed between two looks at the token.
    private static let dataPiece = 4 << 20

    /// Returns the hash of a sequence that `make` creates for it; nil if the sequence fails or the load is stopped.
    static func hash(of make: @escaping @Sendable () -> AnyChunkIterator, _ kind: DigestHash, _ load: LoadHandle) async
        -> String?
    {
        let hashed = await CallbackOutcome<String?>.run(load) {
            let (pieces, running) = (make(), BodyHash(kind))
            while true {
                guard let next = try? await pieces.next() as SequencePiece?? else { return nil }
                guard let piece = next else { return running.finish() }
                piece.withBytes(running.update)
            }
        }
        guard case .answered(let digits) = hashed else { return nil }
        return digits
    }
}

/// An incremental hash of the pieces of a body, used by one task at a time.
final class BodyHash {
    private var running: DigestHash.Running

    init(_ kind: DigestHash) { running = DigestHash.Running(kind) }

    func update(_ piece: Chunk) { piece.withUnsafeBytes { running.update($0) } }
    func update(_ bytes: UnsafeRawBufferPointer) { running.update(bytes) }
    func finish() -> String? { running.finish() }
}
