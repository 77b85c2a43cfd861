// SPDX-License-Identifier: Apache-2.0

import URLLoadingCOpenSSL

/// MD4 and MD5 for NTLM, and for nothing else. MD4 comes from OpenSSL's legacy provider, loaded into a library context
/// of its own, so that the rest of the process cannot use it.
package final class LegacyDigest: Sendable {
    // Unsafe: set once; OpenSSL only reads them.
    private nonisolated(unsafe) let context: OpaquePointer
    private nonisolated(unsafe) let md4: OpaquePointer
    private nonisolated(unsafe) let md5: OpaquePointer

    /// The shared instance, loaded at first use for the life of the process; `nil` where the legacy provider is not
    /// installed.
    package static var shared: LegacyDigest? { search.library }
    private static let search = FoundLibrary { LegacyDigest() }

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
