// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// A key that signs messages or verifies their signatures (RFC 9421 §3.3).
///
/// ```swift
/// let key = try SigningKey(pem: Data(contentsOf: file))
/// let signer = try MessageSigner(key: key, keyID: "client-7")
/// ```
/// The key stays in memory. Neither its description nor its reflection shows it, and no error contains it.
public struct SigningKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The algorithms, by their registered names (RFC 9421 §6.2.2).
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// Ed25519 (RFC 8032).
        case ed25519
        /// ECDSA over P-256 with SHA-256.
        case ecdsaP256 = "ecdsa-p256-sha256"
        /// ECDSA over P-384 with SHA-384.
        case ecdsaP384 = "ecdsa-p384-sha384"
        /// RSASSA-PSS with SHA-512 (RFC 8017 §8.1).
        case rsaPSS = "rsa-pss-sha512"
        /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 §8.2), for peers that know no other.
        case rsaPKCS1 = "rsa-v1_5-sha256"
        /// HMAC with SHA-256 and a secret that both sides share (RFC 2104).
        case hmacSHA256 = "hmac-sha256"
    }

    let key: MessageKey

    /// Creates a key from PEM text: a private key that signs and verifies, or a public one that only verifies. Its kind
    /// decides about the algorithm: Ed25519, ECDSA over P-256 or P-384, or RSA of 2048 to 16384 bits.
    /// - Parameters:
    ///   - pem: PKCS#8, SEC 1, the private key of PKCS#1, or SubjectPublicKeyInfo.
    ///   - passphrase: decrypts the key if it is encrypted.
    ///   - algorithm: the algorithm that the key is used with; `nil`, the default, for that of its kind, which is
    ///     ``Algorithm/rsaPSS`` for RSA.
    /// - Throws: ``LoadError/Reason/cannotSign`` for another kind of key, or if the algorithm needs one;
    ///   ``LoadError/Reason/wrongPassphrase``.
    public init(
        pem: some Collection<UInt8>, passphrase: String? = nil, algorithm: Algorithm? = nil
    ) throws(LoadError) {
        do throws(MessageKey.Problem) {
            key = try MessageKey(
                pem: Array(pem), passphrase: passphrase.map { Array($0.utf8) }, algorithm?.ofKey)
        } catch {
            switch error {
            case .passphrase:
                throw LoadError(
                    .wrongPassphrase, phase: .preparing, party: .local,
                    detail: "the key is encrypted; passphrase missing or wrong")
            case .unreadable: throw .cannotSign("the text contains no key in PEM")
            case .unsupported:
                throw .cannotSign(
                    algorithm.map { "the key is not for \($0.rawValue)" }
                        ?? "only Ed25519, P-256, P-384 and RSA keys of 2048 to 16384 bits are supported")
            }
        }
    }

    private init(_ key: MessageKey) { self.key = key }

    /// Returns a key for HMAC-SHA256.
    /// - Parameter secret: the secret that both sides share; 32 bytes or more of a random source (RFC 2104 §3). An
    ///   empty one neither signs nor verifies (``canSign``).
    public static func hmacSHA256(_ secret: some Collection<UInt8>) -> SigningKey {
        SigningKey(MessageKey(secret: Array(secret)))
    }

    /// Makes a key pair from the random numbers of the system.
    ///
    /// ```swift
    /// let key = try SigningKey.generate(.ed25519)
    /// try key.privatePEM(passphrase: word)?.write(to: file, atomically: true, encoding: .utf8)
    /// ```
    /// - Parameter algorithm: Ed25519, ECDSA, or RSA, whose key has 3072 bits and takes a tenth of a second and more.
    /// - Throws: ``LoadError/Reason/cannotSign`` for HMAC, whose secret is yours, or if OpenSSL refuses the algorithm.
    public static func generate(_ algorithm: Algorithm) throws(LoadError) -> SigningKey {
        guard let key = MessageKey.make(algorithm.ofKey) else {
            throw .cannotSign("no key can be made for \(algorithm.rawValue)")
        }
        return SigningKey(key)
    }

    /// The public key as SubjectPublicKeyInfo in PEM, for the peer that verifies; `nil` for HMAC, whose key is secret.
    public var publicPEM: String? { key.publicPEM.map { String(decoding: $0, as: UTF8.self) } }

    /// Returns the private key as PKCS#8 in PEM; `nil` for a public key, for HMAC, and for an empty passphrase.
    /// - Parameter passphrase: encrypts the text, with AES-256 and OpenSSL's default of PBKDF2, which does not protect
    ///   a short one from being guessed; with `nil` the text is as secret as the key.
    public func privatePEM(passphrase: String?) -> String? {
        key.privatePEM(passphrase: passphrase.map { Array($0.utf8) }).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The algorithm.
    public var algorithm: Algorithm { Algorithm(key.algorithm) }

    /// Whether the key can sign; false for a public key and an empty secret.
    public var canSign: Bool { key.canSign }

    /// `ed25519 key`.
    public var description: String {
        "\(algorithm.rawValue) \(canSign || algorithm == .hmacSHA256 ? "key" : "public key")"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["algorithm": algorithm.rawValue]) }
}

extension SigningKey.Algorithm {
    fileprivate init(_ algorithm: MessageKey.Algorithm) {
        self =
            switch algorithm {
            case .ed25519: .ed25519
            case .ecdsaP256: .ecdsaP256
            case .ecdsaP384: .ecdsaP384
            case .rsaPSS: .rsaPSS
            case .rsaPKCS1: .rsaPKCS1
            case .hmacSHA256: .hmacSHA256
            }
    }

    fileprivate var ofKey: MessageKey.Algorithm {
        switch self {
        case .ed25519: .ed25519
        case .ecdsaP256: .ecdsaP256
        case .ecdsaP384: .ecdsaP384
        case .rsaPSS: .rsaPSS
        case .rsaPKCS1: .rsaPKCS1
        case .hmacSHA256: .hmacSHA256
        }
    }
}
