public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Configuration.TLS {
    /// What a server's chain must hold.
    ///
    /// ```swift
    /// let pin = Configuration.TLS.Pin("sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    /// ```
    public enum Pin: Sendable, Hashable, CustomStringConvertible {
        /// A public key, by the SHA-256 of its SubjectPublicKeyInfo (RFC 7469 §2.4): ``Certificate/publicKeySHA256``.
        case publicKey(sha256: Data)
        /// A certificate, by the SHA-256 of its DER: ``Certificate/sha256``. It stands until it is renewed.
        case certificate(sha256: Data)

        /// A public key as curl writes it: `sha256//` and the digest in Base64. `nil` for what is none.
        public init?(_ text: String) {
            guard text.hasPrefix("sha256//"), let digest = Data(base64Encoded: String(text.dropFirst(8))),
                digest.count == 32
            else { return nil }
            self = .publicKey(sha256: digest)
        }

        /// `sha256//…` of a key, `certificate sha256//…` of a certificate.
        public var description: String {
            switch self {
            case .publicKey(let digest): "sha256//" + digest.base64EncodedString()
            case .certificate(let digest): "certificate sha256//" + digest.base64EncodedString()
            }
        }
    }

    /// The pins of some hosts.
    ///
    /// One of the certificates between the server's own and its root must match one of the pins; of several entries that
    /// fit a host any pin will do. They hold besides all other checks, on resumed sessions too, and no decision takes
    /// them back. Without verification they are held against the server's own certificate alone.
    public struct Pins: Sendable, Hashable {
        let rule: TLSRule<[TLSPin]>

        /// - Parameters:
        ///   - hosts: a host; `*.example.org` for every name below it; `*` for all.
        ///   - pins: of which one must match; none lets nobody pass.
        /// - Throws: ``LoadError/Reason/badHostPattern``.
        public init(_ hosts: String, _ pins: [Pin]) throws(LoadError) {
            rule = TLSRule(try TLSHostPattern(checking: hosts), pins.map(TLSPin.init))
        }
    }

    /// Who we are to some hosts.
    public struct HostIdentity: Sendable, Hashable {
        let rule: TLSRule<TLSIdentity>

        /// - Parameter hosts: as for ``Pins``.
        /// - Throws: ``LoadError/Reason/badHostPattern``.
        public init(_ hosts: String, _ identity: ClientIdentity) throws(LoadError) {
            rule = TLSRule(try TLSHostPattern(checking: hosts), identity.identity)
        }
    }

    /// What is made of the status of a certificate (OCSP) that its server brings along. No status is ever fetched from
    /// elsewhere.
    public enum OCSPStapling: Sendable, Hashable {
        /// None is asked for.
        case ignored
        /// One that says revoked ends the load; that there is none, or none that is worth anything, means nothing.
        case ifPresent
        /// It must be there, signed, recent and good.
        case required
    }

    /// The least strength of every key and signature in a chain.
    public enum Strength: Int, Sendable, Hashable {
        /// RSA of 2048 bits, curves of 224, SHA-224.
        case bits112 = 2
        /// RSA of 3072 bits, curves of 256, SHA-256.
        case bits128 = 3
        /// RSA of 7680 bits, curves of 384, SHA-384.
        case bits192 = 4
    }
}

extension TLSHostPattern {
    init(checking text: String) throws(LoadError) {
        guard let pattern = Self(parsing: text) else {
            throw LoadError(.badHostPattern, phase: .preparing, party: .local, detail: "no host: \(text)")
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
