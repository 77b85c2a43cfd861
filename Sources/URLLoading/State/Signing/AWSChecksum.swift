// SPDX-License-Identifier: Apache-2.0

// The checksums that Amazon S3 compares with what it has received, and keeps with an object.

import URLLoadingIO
import URLLoadingWire

extension AWSSigner {
    /// A checksum that S3 compares with the bytes that it has received, and keeps with the object.
    public enum Checksum: String, Sendable, Hashable, CaseIterable {
        /// CRC-32, which detects damage on the way: four bytes, and hardly any time.
        case crc32
        /// CRC-32C, which detects damage on the way: four bytes, by an instruction of the processor.
        case crc32c
        /// CRC-64/NVME, which S3 itself adds to objects without a checksum: eight bytes.
        case crc64NVME = "crc64nvme"
        /// SHA-1: 20 bytes. Different content with the same value can be made; use it where a service asks for it.
        case sha1
        /// SHA-256, which also identifies the content: 32 bytes.
        case sha256

        fileprivate enum Function {
            case check(RunningCRC.Kind)
            case hash(DigestHash, size: Int)
        }

        fileprivate var function: Function {
            switch self {
            case .crc32: .check(.crc32)
            case .crc32c: .check(.crc32c)
            case .crc64NVME: .check(.crc64NVME)
            case .sha1: .hash(.sha1, size: 20)
            case .sha256: .hash(.sha256, size: 32)
            }
        }

        /// The number of bytes of the checksum.
        fileprivate var size: Int {
            switch function {
            case .check(let kind): kind.size
            case .hash(_, let size): size
            }
        }
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
    private var check: RunningCRC?
    private var hash: DigestHash.Running?

    init(_ field: Field) {
        self.field = field
        switch field.checksum.function {
        case .check(let kind): check = RunningCRC(kind)
        case .hash(let function, _): hash = DigestHash.Running(function)
        }
    }

    func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            check?.update(bytes)
            hash?.update(bytes)
        }
    }

    /// Returns the checksum in Base64; nil where OpenSSL refuses the algorithm. Call it once.
    func finish() -> String? { (check?.bytes ?? hash?.finishBytes()).map { Base64.encode($0) } }
}
