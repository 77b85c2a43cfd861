import URLLoadingCOpenSSL

/// SHA-256 (FIPS 180-4) of bytes that come in pieces. Used by one task.
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

    /// 64 hexadecimal digits, of all that came. Asked for once; empty if there is no SHA-256 to be had.
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
