// SPDX-License-Identifier: Apache-2.0

// The digests that the file of a download must have. They are computed while the file is written in order; what was
// written before, or elsewhere, is read from the file at its end.

import URLLoadingIO
import URLLoadingWire

/// Used by one thread at a time: the one that writes the file.
final class DownloadDigests: @unchecked Sendable {
    // Unchecked: the calls of one download follow each other.
    private var check: DigestCheck
    private let wanted: [DigestCheck.Wanted]
    private var offset: Int64 = 0

    /// - Parameters:
    ///   - expected: the caller's digest.
    ///   - head: the response to a request for a part, or of which a part is read: the digest of its representation
    ///     covers the whole file, so it cannot be checked with the content of the response.
    convenience init?(_ expected: BodyDigest?, part head: HTTPHead?) {
        if let expected {
            self.init([.init(digest: expected)])
        } else if let head {
            // The content of a 200 is the representation.
            let fields: [FieldName] = head.status == .ok ? [.reprDigest, .contentDigest] : [.reprDigest]
            self.init(fields.flatMap { DigestCheck.Wanted.stated(by: $0, in: head.headers) })
        } else {
            return nil
        }
    }

    /// - Parameter trailers: those of the response to a request for a part.
    convenience init?(ofPart trailers: Headers) { self.init(DigestCheck.Wanted.stated(by: .reprDigest, in: trailers)) }

    private init?(_ wanted: [DigestCheck.Wanted]) {
        guard !wanted.isEmpty else { return nil }
        (self.wanted, check) = (wanted, DigestCheck(wanted))
    }

    /// Notes bytes that were written.
    func wrote(_ bytes: UnsafeRawBufferPointer, at place: Int64) {
        guard place == offset else { return }
        check.update(bytes)
        offset += Int64(bytes.count)
    }

    /// Compares the digest of the complete file. Blocks.
    /// - Throws: ``LoadError/Reason/digestMismatch``, ``LoadError/Reason/cannotReadFile``, or the reason why the load
    ///   was stopped meanwhile.
    func finish(_ file: FileWriter, size: Int64, _ control: StopToken) throws(LoadError) {
        if offset != size {
            check = DigestCheck(wanted)
            offset = 0
        }
        while offset < size {
            if let reason = control.stopReason { throw LoadError(reason, phase: .receiving) }
            let bytes: [UInt8]
            do throws(IOFailure) { bytes = try file.bytes(Int(min(Self.pieceSize, size - offset)), at: offset) } catch {
                throw LoadError(file: error, .receiving)
            }
            guard !bytes.isEmpty else { break }
            bytes.withUnsafeBytes { check.update($0) }
            offset += Int64(bytes.count)
        }
        try check.finish()
    }
    private static let pieceSize: Int64 = 1 << 20
}
