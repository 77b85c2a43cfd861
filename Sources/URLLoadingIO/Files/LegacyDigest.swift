import URLLoadingCOpenSSL

/// MD4 and MD5, which NTLM is made of: good for nothing else. MD4 comes from OpenSSL's legacy provider, which is loaded
/// here and nowhere else in the process: what the rest of it may use does not change.
package final class LegacyDigest: @unchecked Sendable {
    // Unchecked: set once, and OpenSSL only reads them.
    private let context: OpaquePointer
    private let md4: OpaquePointer
    private let md5: OpaquePointer

    /// `nil` where the provider is not installed. Loaded when it is first needed, for the life of the process.
    package static let shared = LegacyDigest()

    package init?(provider: String = "legacy") {
        guard let context = OSSL_LIB_CTX_new() else { return nil }
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        guard OSSL_PROVIDER_load(context, provider) != nil, OSSL_PROVIDER_load(context, "default") != nil,
            let md4 = EVP_MD_fetch(context, "MD4", nil), let md5 = EVP_MD_fetch(context, "MD5", nil)
        else {
            OSSL_LIB_CTX_free(context)
            return nil
        }
        (self.context, self.md4, self.md5) = (context, md4, md5)
    }

    deinit {
        EVP_MD_free(md4)
        EVP_MD_free(md5)
        OSSL_LIB_CTX_free(context)
    }

    package func md4(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, md4) }
    package func md5(_ bytes: [UInt8]) -> [UInt8] { digest(bytes, md5) }

    private func digest(_ bytes: [UInt8], _ kind: OpaquePointer) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 16)
        EVP_Digest(bytes, bytes.count, &result, nil, kind, nil)
        return result
    }
}
