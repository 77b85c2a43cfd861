// SPDX-License-Identifier: Apache-2.0

// The checksums that Amazon S3 compares with what it has received, and keeps with an object.

import URLLoadingIO
import URLLoadingWire

extension AWSSigner {
    /// A checksum that S3 compares with the bytes that it has received, and keeps with the object.
    public enum Checksum: String, Sendable, Hashable, CaseIterable {
        /// CRC-32, which detects damage on the way: four bytes, and hardly any time.
        case crc32
        /// SHA-256, which also identifies the content: 32 bytes.
        case sha256

        var size: Int { self == .crc32 ? 4 : 32 }
    }
}

/// The checksum of bytes that arrive in pieces, as the trailer field of an upload. Used by one task.
final class AWSRunningChecksum {
    /// The trailer field: its name, and how long the checksum is.
    struct Field: Sendable {
        let checksum: AWSSigner.Checksum
        let name: String

        init(_ checksum: AWSSigner.Checksum, _ names: AWSSigner.Names) {
            self.checksum = checksum
            name = "x-\(names.prefix)-checksum-\(checksum.rawValue)"
        }

        /// The length of the field with its line end, in bytes.
        var length: Int { name.utf8.count + 1 + (checksum.size + 2) / 3 * 4 + 2 }
    }

    let field: Field
    private var crc = RunningCRC()
    private var hash: DigestHash.Running?

    init(_ field: Field) {
        self.field = field
        if field.checksum == .sha256 { hash = DigestHash.Running(.sha256) }
    }

    func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            switch field.checksum {
            case .crc32: crc.update(bytes)
            case .sha256: hash?.update(bytes)
            }
        }
    }

    /// Returns the checksum in Base64; nil where OpenSSL refuses the algorithm. Call it once.
    func finish() -> String? {
        switch field.checksum {
        case .crc32: Base64.encode(crc.bytes)
        case .sha256: hash?.finishBytes().map { Base64.encode($0) }
        }
    }
}
