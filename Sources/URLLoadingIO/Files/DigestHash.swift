import URLLoadingCOpenSSL

/// The hashes that HTTP authentication is made of (RFC 7616 §3.2).
package enum DigestHash: Sendable {
    case md5, sha256, sha512_256

    /// SHA-1, which nothing may depend upon for its security: a WebSocket's answer is made of it (RFC 6455 4.2.2). Empty
    /// where OpenSSL does not do it.
    package static func sha1(_ bytes: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &result, &count, EVP_sha1(), nil) == 1 else { return [] }
        return Array(result[..<Int(count)])
    }

    private var kind: OpaquePointer? {
        switch self {
        case .md5: EVP_md5()
        case .sha256: EVP_sha256()
        case .sha512_256: EVP_sha512_256()
        }
    }

    /// Hexadecimal digits in lower case; `nil` where OpenSSL does not do it, as MD5 under a policy.
    package func hex(_ bytes: [UInt8]) -> String? {
        var running = Running(self)
        bytes.withUnsafeBytes { running.update($0) }
        return running.finish()
    }

    /// The same of bytes that come in pieces.
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

        /// Asked for once.
        package mutating func finish() -> String? {
            var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            guard let context, EVP_DigestFinal_ex(context, &result, &count) == 1 else { return nil }
            return result[..<Int(count)].map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
    }
}
