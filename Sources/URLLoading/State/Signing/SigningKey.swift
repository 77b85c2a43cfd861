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
        /// HMAC with SHA-256 and a secret that both sides share (RFC 2104).
        case hmacSHA256 = "hmac-sha256"
    }

    let key: MessageKey

    /// Creates a key from PEM text: a private key that signs and verifies, or a public one that only verifies. Its kind
    /// decides about the algorithm: Ed25519 or ECDSA over P-256.
    /// - Parameters:
    ///   - pem: PKCS#8, SEC 1 or SubjectPublicKeyInfo.
    ///   - passphrase: decrypts the key if it is encrypted.
    /// - Throws: ``LoadError/Reason/cannotSign`` for another kind of key; ``LoadError/Reason/wrongPassphrase``.
    public init(pem: some Collection<UInt8>, passphrase: String? = nil) throws(LoadError) {
        do throws(MessageKey.Problem) {
            key = try MessageKey(pem: Array(pem), passphrase: passphrase.map { Array($0.utf8) })
        } catch {
            switch error {
            case .passphrase:
                throw LoadError(
                    .wrongPassphrase, phase: .preparing, party: .local,
                    detail: "the key is encrypted; passphrase missing or wrong")
            case .unreadable: throw .cannotSign("the text contains no key in PEM")
            case .unsupported: throw .cannotSign("only Ed25519 and P-256 keys are supported")
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

    /// The algorithm.
    public var algorithm: Algorithm {
        switch key.algorithm {
        case .ed25519: .ed25519
        case .ecdsaP256: .ecdsaP256
        case .hmacSHA256: .hmacSHA256
        }
    }

    /// Whether the key can sign; false for a public key and an empty secret.
    public var canSign: Bool { key.canSign }

    /// `ed25519 key`.
    public var description: String {
        "\(algorithm.rawValue) \(canSign || algorithm == .hmacSHA256 ? "key" : "public key")"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["algorithm": algorithm.rawValue]) }
}
