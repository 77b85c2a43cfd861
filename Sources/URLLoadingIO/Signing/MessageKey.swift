// SPDX-License-Identifier: Apache-2.0

// In this folder: keys that sign and verify messages, and the hashes that signatures need

import URLLoadingCOpenSSL

/// A key that signs or verifies texts, with one algorithm.
package final class MessageKey: Sendable {
    package enum Algorithm: Sendable, Hashable {
        /// RFC 8032.
        case ed25519
        /// ECDSA over P-256 with SHA-256 (FIPS 186-5); signatures are r and s, 32 bytes each.
        case ecdsaP256
        /// RFC 2104 with SHA-256.
        case hmacSHA256
    }

    package enum Problem: Error, Sendable, Hashable {
        case unreadable
        /// The key is encrypted, with another passphrase, or with one where none was given.
        case passphrase
        /// The key is not of a supported kind.
        case unsupported
    }

    private enum Material {
        // Unsafe: not changed after `init`; OpenSSL counts its references itself.
        case pair(OpaquePointer, hasPrivate: Bool)
        case secret([UInt8])
    }

    package let algorithm: Algorithm
    private nonisolated(unsafe) let material: Material

    /// Creates a key for HMAC.
    package init(secret: [UInt8]) { (algorithm, material) = (.hmacSHA256, .secret(secret)) }

    /// Creates a key from PEM: a private key, or a public one that only verifies.
    package init(pem: [UInt8], passphrase: [UInt8]?) throws(Problem) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let (key, isPrivate) = try Self.read(pem, passphrase)
        if EVP_PKEY_is_a(key, "ED25519") == 1 {
            algorithm = .ed25519
        } else if EVP_PKEY_is_a(key, "EC") == 1, EVP_PKEY_get_bits(key) == 256, Self.isP256(key) {
            algorithm = .ecdsaP256
        } else {
            EVP_PKEY_free(key)
            throw .unsupported
        }
        material = .pair(key, hasPrivate: isPrivate)
    }

    private static func read(
        _ pem: [UInt8], _ passphrase: [UInt8]?
    ) throws(Problem) -> (key: OpaquePointer, isPrivate: Bool) {
        do throws(TLSIdentity.Problem) { return (try TLSIdentity.key(pem, passphrase), true) } catch {
            guard error != .passphrase else { throw .passphrase }
            guard let key = PEM.publicKey(pem) else { throw .unreadable }
            return (key, false)
        }
    }

    deinit { if case .pair(let key, _) = material { EVP_PKEY_free(key) } }

    package var canSign: Bool {
        switch material {
        case .pair(_, let hasPrivate): hasPrivate
        // The empty secret is known to all.
        case .secret(let secret): !secret.isEmpty
        }
    }

    private static func isP256(_ key: OpaquePointer) -> Bool {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return false }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
    }

    // MARK: Signatures

    /// Returns the signature of a text; `nil` without a private key or with an empty secret, and where OpenSSL
    /// refuses the algorithm.
    package func sign(_ text: [UInt8]) -> [UInt8]? {
        guard canSign else { return nil }
        switch material {
        case .secret(let secret): return Self.hmac(secret, text)
        case .pair(let key, _):
            guard let signature = Self.sign(text, key, isEdwards: algorithm == .ed25519) else { return nil }
            return algorithm == .ecdsaP256 ? Self.joined(der: signature) : signature
        }
    }

    /// Returns whether a signature of a text is right.
    package func verifies(_ signature: [UInt8], of text: [UInt8]) -> Bool {
        switch material {
        case .secret(let secret):
            guard canSign, let right = Self.hmac(secret, text), right.count == signature.count else { return false }
            return CRYPTO_memcmp(right, signature, right.count) == 0
        case .pair(let key, _):
            guard algorithm == .ecdsaP256 else { return Self.verifies(signature, text, key, isEdwards: true) }
            guard let der = Self.der(joined: signature) else { return false }
            return Self.verifies(der, text, key, isEdwards: false)
        }
    }

    /// Returns HMAC-SHA256 (RFC 2104); `nil` where OpenSSL refuses it.
    package static func hmac(_ key: [UInt8], _ text: [UInt8]) -> [UInt8]? {
        var result = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard HMAC(EVP_sha256(), key, Int32(clamping: key.count), text, text.count, &result, &count) != nil, count == 32
        else {
            ERR_clear_error()
            return nil
        }
        return result
    }

    private static func sign(_ text: [UInt8], _ key: OpaquePointer, isEdwards: Bool) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var count = 0
        guard EVP_DigestSignInit(context, nil, isEdwards ? nil : EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, nil, &count, text, text.count) == 1
        else { return nil }
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &signature, &count, text, text.count) == 1 else { return nil }
        return Array(signature[..<count])
    }

    private static func verifies(
        _ signature: [UInt8], _ text: [UInt8], _ key: OpaquePointer, isEdwards: Bool
    ) -> Bool {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, isEdwards ? nil : EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, text, text.count) == 1
    }

    // MARK: r and s

    private static let half = 32

    /// Returns r and s of a signature in DER, each of 32 bytes (RFC 9421 §3.3.4).
    private static func joined(der: [UInt8]) -> [UInt8]? {
        let parsed: OpaquePointer? = der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &start, bytes.count)
        }
        guard let parsed else { return nil }
        defer { ECDSA_SIG_free(parsed) }
        var result = [UInt8](repeating: 0, count: 2 * half)
        let isWritten = result.withUnsafeMutableBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return false }
            return BN_bn2binpad(ECDSA_SIG_get0_r(parsed), start, Int32(half)) == half
                && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), start + half, Int32(half)) == half
        }
        return isWritten ? result : nil
    }

    private static func der(joined signature: [UInt8]) -> [UInt8]? {
        guard signature.count == 2 * half, let made = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(made) }
        let r = BN_bin2bn(Array(signature[..<half]), Int32(half), nil)
        let s = BN_bin2bn(Array(signature[half...]), Int32(half), nil)
        // Takes ownership of both, unless one is missing.
        guard ECDSA_SIG_set0(made, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        return PEM.der { i2d_ECDSA_SIG(made, $0) }
    }
}
