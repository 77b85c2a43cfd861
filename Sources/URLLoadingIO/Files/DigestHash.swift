// SPDX-License-Identifier: Apache-2.0

import URLLoadingCOpenSSL

/// The hash functions of HTTP Digest authentication (RFC 7616 §3.2) and of digest fields (RFC 9530 §5).
package enum DigestHash: Sendable {
    /// SHA-1 is for the WebSocket handshake (RFC 6455 §4.2.2) and the checksums of object stores; never for security.
    case md5, sha1, sha256, sha512_256, sha512

    private var kind: OpaquePointer? {
        switch self {
        case .md5: EVP_md5()
        case .sha1: EVP_sha1()
        case .sha256: EVP_sha256()
        case .sha512_256: EVP_sha512_256()
        case .sha512: EVP_sha512()
        }
    }

    /// Returns the hash; empty where OpenSSL refuses the algorithm.
    package func bytes(of bytes: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &result, &count, kind, nil) == 1 else { return [] }
        return Array(result[..<Int(count)])
    }

    /// Returns the hash in lower-case hexadecimal digits; `nil` where OpenSSL refuses the algorithm, as it does MD5
    /// under a FIPS policy.
    package func hex(_ bytes: [UInt8]) -> String? {
        var running = Running(self)
        bytes.withUnsafeBytes { running.update($0) }
        return running.finish()
    }

    /// Returns bytes in lower-case hexadecimal digits.
    package static func hexDigits(of bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Computes a hash of bytes that arrive in pieces.
    package struct Running: ~Copyable {
        private let context: OpaquePointer?

        package init(_ hash: DigestHash) {
            let context = EVP_MD_CTX_new()
            if EVP_DigestInit_ex(context, hash.kind, nil) == 1 {
                self.context = context
            } else {
                EVP_MD_CTX_free(context)
                self.context = nil
            }
        }

        deinit { EVP_MD_CTX_free(context) }

        package mutating func update(_ bytes: UnsafeRawBufferPointer) {
            if let context { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
        }

        /// Returns the hash in lower-case hexadecimal digits; `nil` where OpenSSL refuses the algorithm. Call it once.
        package mutating func finish() -> String? { finishBytes().map { DigestHash.hexDigits(of: $0) } }

        /// Returns the hash; `nil` where OpenSSL refuses the algorithm. Call it once.
        package mutating func finishBytes() -> [UInt8]? {
            var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            guard let context, EVP_DigestFinal_ex(context, &result, &count) == 1 else { return nil }
            return Array(result[..<Int(count)])
        }
    }
}
