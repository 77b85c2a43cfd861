// SPDX-License-Identifier: Apache-2.0

import URLLoadingCOpenSSL

/// Computes the SHA-256 (FIPS 180-4) of bytes that arrive in pieces. Used by one task at a time.
package final class Digest {
    private let context: OpaquePointer?

    package init() {
        context = EVP_MD_CTX_new()
        if let context { EVP_DigestInit_ex(context, EVP_sha256(), nil) }
    }

    deinit { EVP_MD_CTX_free(context) }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        if let context { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
    }

    /// Returns the digest of all bytes as 64 hexadecimal digits. Call it once. Empty if OpenSSL offers no SHA-256.
    package func finish() -> String {
        var result = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard let context, EVP_DigestFinal_ex(context, &result, &count) == 1 else { return "" }
        return result[..<Int(count)].map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    package static func hex(_ bytes: some Collection<UInt8>) -> String {
        let digest = Digest()
        Array(bytes).withUnsafeBytes { digest.update($0) }
        return digest.finish()
    }
}
