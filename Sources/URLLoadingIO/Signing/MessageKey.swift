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
        /// ECDSA over P-384 with SHA-384; signatures are r and s, 48 bytes each.
        case ecdsaP384
        /// RSASSA-PSS with SHA-512 and a salt of 64 bytes (RFC 8017 §8.1).
        case rsaPSS
        /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 §8.2).
        case rsaPKCS1
        /// RFC 2104 with SHA-256.
        case hmacSHA256
    }

    package enum Problem: Error, Sendable, Hashable {
        case unreadable
        /// The key is encrypted, with another passphrase, or with one where none was given.
        case passphrase
        /// The key is not of a supported kind, or not of the kind that the algorithm needs.
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
    /// - Parameter wanted: the algorithm; `nil` for the first one of the key's kind.
    package init(pem: [UInt8], passphrase: [UInt8]?, _ wanted: Algorithm? = nil) throws(Problem) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let (key, isPrivate) = try Self.read(pem, passphrase)
        let possible = Self.algorithms(of: key)
        guard let algorithm = wanted ?? possible.first, possible.contains(algorithm) else {
            EVP_PKEY_free(key)
            throw .unsupported
        }
        self.algorithm = algorithm
        material = .pair(key, hasPrivate: isPrivate)
    }

    private init(_ key: OpaquePointer, _ algorithm: Algorithm) {
        self.algorithm = algorithm
        material = .pair(key, hasPrivate: true)
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

    /// The supported lengths of RSA keys in bits: shorter ones are weak (NIST SP 800-131A), longer ones make each
    /// signature expensive.
    private static let lengthsOfRSA = 2048...16384

    /// Returns the algorithms that a key may be used with, the preferred one first.
    private static func algorithms(of key: OpaquePointer) -> [Algorithm] {
        if EVP_PKEY_is_a(key, "ED25519") == 1 { return [.ed25519] }
        if EVP_PKEY_is_a(key, "EC") == 1 {
            return switch curve(of: key) {
            case "prime256v1": [.ecdsaP256]
            case "secp384r1": [.ecdsaP384]
            default: []
            }
        }
        guard lengthsOfRSA.contains(Int(EVP_PKEY_get_bits(key))) else { return [] }
        if EVP_PKEY_is_a(key, "RSA") == 1 { return [.rsaPSS, .rsaPKCS1] }
        return EVP_PKEY_is_a(key, "RSA-PSS") == 1 ? [.rsaPSS] : []
    }

    private static func curve(of key: OpaquePointer) -> String? {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return nil }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Making and writing

    /// The length of new RSA keys in bits: as strong as P-256 (NIST SP 800-57, part 1, table 2).
    private static let lengthOfNewRSA: Int32 = 3072

    /// Makes a key pair; `nil` for HMAC, and where OpenSSL refuses it.
    package static func make(_ algorithm: Algorithm) -> MessageKey? {
        let kind: String
        var curve: String?
        switch algorithm {
        case .ed25519: kind = "ED25519"
        case .ecdsaP256: (kind, curve) = ("EC", "P-256")
        case .ecdsaP384: (kind, curve) = ("EC", "P-384")
        case .rsaPSS, .rsaPKCS1: kind = "RSA"
        case .hmacSHA256: return nil
        }
        defer { ERR_clear_error() }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, kind, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_keygen_init(context) == 1 else { return nil }
        if let curve, EVP_PKEY_CTX_set_group_name(context, curve) != 1 { return nil }
        if kind == "RSA", EVP_PKEY_CTX_set_rsa_keygen_bits(context, lengthOfNewRSA) != 1 { return nil }
        var key: OpaquePointer?
        guard EVP_PKEY_generate(context, &key) == 1, let key else { return nil }
        return MessageKey(key, algorithm)
    }

    /// The public key as SubjectPublicKeyInfo in PEM; `nil` for a secret.
    package var publicPEM: [UInt8]? {
        guard case .pair(let key, _) = material else { return nil }
        return PEM.written { PEM_write_bio_PUBKEY($0, key) }
    }

    /// Returns the private key as PKCS#8 in PEM; `nil` without one.
    /// - Parameter passphrase: encrypts it, with AES-256; `nil` for a key that is not encrypted. With an empty one
    ///   nothing is returned: OpenSSL might ask for another on the terminal.
    package func privatePEM(passphrase: [UInt8]?) -> [UInt8]? {
        guard case .pair(let key, hasPrivate: true) = material else { return nil }
        guard let passphrase else {
            return PEM.written { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
        }
        guard !passphrase.isEmpty else { return nil }
        let word = passphrase.map { CChar(bitPattern: $0) }
        return PEM.written {
            PEM_write_bio_PKCS8PrivateKey($0, key, EVP_aes_256_cbc(), word, Int32(clamping: word.count), nil, nil)
        }
    }

    // MARK: Signatures

    /// Returns the signature of a text; `nil` without a private key or with an empty secret, and where OpenSSL
    /// refuses the algorithm.
    package func sign(_ text: [UInt8]) -> [UInt8]? {
        guard canSign else { return nil }
        switch material {
        case .secret(let secret): return Self.hmac(secret, text)
        case .pair(let key, _):
            guard let signature = Self.sign(text, key, algorithm) else { return nil }
            return algorithm.half.map { Self.joined(der: signature, half: $0) } ?? signature
        }
    }

    /// Returns whether a signature of a text is right.
    package func verifies(_ signature: [UInt8], of text: [UInt8]) -> Bool {
        switch material {
        case .secret(let secret):
            guard canSign, let right = Self.hmac(secret, text), right.count == signature.count else { return false }
            return CRYPTO_memcmp(right, signature, right.count) == 0
        case .pair(let key, _):
            guard let half = algorithm.half else { return Self.verifies(signature, text, key, algorithm) }
            guard let der = Self.der(joined: signature, half: half) else { return false }
            return Self.verifies(der, text, key, algorithm)
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

    private static func sign(_ text: [UInt8], _ key: OpaquePointer, _ algorithm: Algorithm) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var (count, details) = (0, OpaquePointer?.none)
        guard EVP_DigestSignInit(context, &details, algorithm.hash, nil, key) == 1, algorithm.setPadding(of: details),
            EVP_DigestSign(context, nil, &count, text, text.count) == 1
        else { return nil }
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &signature, &count, text, text.count) == 1 else { return nil }
        return Array(signature[..<count])
    }

    private static func verifies(
        _ signature: [UInt8], _ text: [UInt8], _ key: OpaquePointer, _ algorithm: Algorithm
    ) -> Bool {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        var details: OpaquePointer?
        return EVP_DigestVerifyInit(context, &details, algorithm.hash, nil, key) == 1
            && algorithm.setPadding(of: details)
            && EVP_DigestVerify(context, signature, signature.count, text, text.count) == 1
    }

    // MARK: r and s

    /// Returns r and s of a signature in DER, each of `half` bytes (RFC 9421 §3.3.4, §3.3.5).
    private static func joined(der: [UInt8], half: Int) -> [UInt8]? {
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

    private static func der(joined signature: [UInt8], half: Int) -> [UInt8]? {
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

extension MessageKey.Algorithm {
    /// The hash function; `nil` where the algorithm has its own.
    fileprivate var hash: OpaquePointer? {
        switch self {
        case .ed25519: nil
        case .ecdsaP256, .rsaPKCS1, .hmacSHA256: EVP_sha256()
        case .ecdsaP384: EVP_sha384()
        case .rsaPSS: EVP_sha512()
        }
    }

    /// The length of r and of s of ECDSA, in bytes; `nil` for other algorithms.
    fileprivate var half: Int? {
        switch self {
        case .ecdsaP256: 32
        case .ecdsaP384: 48
        case .ed25519, .rsaPSS, .rsaPKCS1, .hmacSHA256: nil
        }
    }

    /// Sets the padding of RSA (RFC 9421 §3.3.1, §3.3.2).
    fileprivate func setPadding(of details: OpaquePointer?) -> Bool {
        switch self {
        case .rsaPSS:
            EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING) == 1
                && EVP_PKEY_CTX_set_rsa_pss_saltlen(details, 64) == 1
                && EVP_PKEY_CTX_set_rsa_mgf1_md(details, EVP_sha512()) == 1
        case .rsaPKCS1: EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PADDING) == 1
        case .ed25519, .ecdsaP256, .ecdsaP384, .hmacSHA256: true
        }
    }
}
