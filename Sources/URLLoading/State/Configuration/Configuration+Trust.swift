// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Configuration.TLS {
    /// A public key or certificate that a server's chain must contain.
    ///
    /// ```swift
    /// let pin = Configuration.TLS.Pin("sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    /// ```
    public enum Pin: Sendable, Hashable, CustomStringConvertible {
        /// A public key, by the SHA-256 of its SubjectPublicKeyInfo (RFC 7469 §2.4): ``Certificate/publicKeySHA256``.
        case publicKey(sha256: Data)
        /// A certificate, by the SHA-256 of its DER: ``Certificate/sha256``. The pin fails when the certificate is
        /// renewed.
        case certificate(sha256: Data)

        /// Parses a public key in curl's format: `sha256//` and the digest in Base64. `nil` for other text.
        public init?(_ text: String) {
            guard text.hasPrefix("sha256//"), let digest = Data(base64Encoded: String(text.dropFirst(8))),
                digest.count == 32
            else { return nil }
            self = .publicKey(sha256: digest)
        }

        /// `sha256//…` for a key, `certificate sha256//…` for a certificate.
        public var description: String {
            switch self {
            case .publicKey(let digest): "sha256//" + digest.base64EncodedString()
            case .certificate(let digest): "certificate sha256//" + digest.base64EncodedString()
            }
        }
    }

    /// The pins of a host or of several hosts.
    ///
    /// A certificate of the chain, from the server's own to the root, must match one of the pins; if several entries
    /// match a host, any of their pins will do. Pins are checked in addition to all other checks, on resumed sessions
    /// as well, and no decision overrides them. Without verification they are compared with the server's own
    /// certificate only.
    public struct Pins: Sendable, Hashable {
        let rule: TLSRule<[TLSPin]>

        /// Creates the pins of one or several hosts.
        /// - Parameters:
        ///   - hosts: a host; `*.example.org` for all its subdomains; `*` for all hosts.
        ///   - pins: one of them must match; an empty array refuses every server.
        /// - Throws: ``LoadError/Reason/badHostPattern``.
        public init(_ hosts: String, _ pins: [Pin]) throws(LoadError) {
            rule = TLSRule(try TLSHostPattern(checking: hosts), pins.map(TLSPin.init))
        }
    }

    /// The client identity for a host or for several hosts.
    public struct HostIdentity: Sendable, Hashable {
        let rule: TLSRule<TLSIdentity>

        /// Creates the identity for one or several hosts.
        /// - Parameter hosts: a pattern as for ``Pins``.
        /// - Throws: ``LoadError/Reason/badHostPattern``.
        public init(_ hosts: String, _ identity: ClientIdentity) throws(LoadError) {
            rule = TLSRule(try TLSHostPattern(checking: hosts), identity.identity)
        }
    }

    /// How a certificate status (OCSP) that a server staples to its certificate is used. The library never fetches a
    /// status itself.
    public enum OCSPStapling: Sendable, Hashable {
        /// No status is requested.
        case ignored
        /// A revoked status ends the load; a missing or invalid status is ignored.
        case ifPresent
        /// The status must be present, signed, recent and good.
        case required
    }

    /// The minimum strength of every key and signature in a chain.
    public enum Strength: Int, Sendable, Hashable {
        /// RSA with 2048 bits, curves with 224 bits, SHA-224.
        case bits112 = 2
        /// RSA with 3072 bits, curves with 256 bits, SHA-256.
        case bits128 = 3
        /// RSA with 7680 bits, curves with 384 bits, SHA-384.
        case bits192 = 4
    }
}

extension TLSHostPattern {
    init(checking text: String) throws(LoadError) {
        guard let pattern = Self(parsing: text) else {
            throw LoadError(.badHostPattern, phase: .preparing, party: .local, detail: "not a host pattern: \(text)")
        }
        self = pattern
    }

    private init?(parsing text: String) {
        if text == "*" {
            self.init(text)
            return
        }
        let isBelow = text.hasPrefix("*.")
        let name = isBelow ? String(text.dropFirst(2)) : text
        let isBare = name.first != "[" && name.contains(":")
        guard let host = try? Origin.Host(isBare ? "[\(name)]" : name) else { return nil }
        switch (TLSPeerName(host), isBelow) {
        case (.dns(let plain), _) where !plain.isEmpty: self.init((isBelow ? "*." : "") + plain)
        case (.ip(let bytes), false): self.init(TLSPeerName.ip(bytes).description)
        default: return nil
        }
    }
}

extension TLSPin {
    fileprivate init(_ pin: Configuration.TLS.Pin) {
        self =
            switch pin {
            case .publicKey(let digest): .publicKey(Array(digest))
            case .certificate(let digest): .certificate(Array(digest))
            }
    }
}

extension Certificate {
    /// A pin of the certificate's public key (RFC 7469 §2.4): it holds for a renewed certificate with the same key.
    ///
    /// ```swift
    /// configuration.tls.pins = [try .init("example.org", [certificate.pin])]
    /// ```
    public var pin: Configuration.TLS.Pin { .publicKey(sha256: publicKeySHA256) }
}
