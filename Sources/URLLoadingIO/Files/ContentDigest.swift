import URLLoadingCOpenSSL

/// SHA-256 (FIPS 180-4): to tell contents apart, and damaged text from sound.
package enum ContentDigest {
    /// The 32 bytes; none if the library refuses, which it does for want of memory alone.
    package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        // An empty buffer may have no address, and the function wants none then.
        guard EVP_Digest(bytes.baseAddress, bytes.count, &digest, &count, EVP_sha256(), nil) == 1 else { return [] }
        return digest
    }

    /// The same for an array.
    package static func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { sha256($0) } }
}
