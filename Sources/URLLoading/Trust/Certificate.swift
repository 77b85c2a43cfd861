public import FoundationEssentials
package import URLLoadingIO

/// An X.509 certificate (RFC 5280), taken apart.
///
/// ```swift
/// for certificate in trust.certificates {
///     print(certificate.subject, certificate.notAfter, certificate.publicKey)
/// }
/// ```
/// Nothing here was checked: it is what somebody says of himself. ``ServerTrust/isTrusted`` tells what it is worth.
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
    package let facts: CertificateFacts

    init(_ facts: CertificateFacts) { self.facts = facts }

    /// A name it is for (RFC 5280 §4.2.1.6).
    public enum Name: Sendable, Hashable, CustomStringConvertible {
        /// A host's, as it is written there: wildcards and zero bytes too.
        case dns(String)
        /// An address, as `192.0.2.1` or `2001:db8::1`.
        case address(String)
        case email(String)
        case uri(String)
        /// Of another kind, with the number of its tag.
        case other(Int)

        public var description: String {
            switch self {
            case .dns(let name), .address(let name), .email(let name), .uri(let name): name.shown
            case .other(let tag): "[\(tag)]"
            }
        }
    }

    /// Its public key: what kind, and how strong.
    public struct PublicKey: Sendable, Hashable, CustomStringConvertible {
        /// `RSA`, `EC prime256v1`, `Ed25519` or the name of another.
        public let algorithm: String
        /// Its size in bits: of RSA the modulus, of others the field.
        public let bits: Int
        /// `RSA 2048`, `EC prime256v1`.
        public var description: String { algorithm.contains(" ") ? algorithm : "\(algorithm) \(bits)" }
    }

    /// - Parameter der: exactly one certificate; `nil` if it is none.
    public init?(der: some Collection<UInt8>) {
        guard let facts = CertificateFacts(der: Array(der)) else { return nil }
        self.facts = facts
    }

    /// Whose it is, such as `CN=example.org,O=Example`, as RFC 4514 writes it. What clients check is ``subjectAlternativeNames``.
    public var subject: String { facts.subject.shown }
    /// Who vouches for it.
    public var issuer: String { facts.issuer.shown }
    /// The first common name of ``subject``. No name of a host is taken from it (RFC 9525).
    public var commonName: String? { facts.commonName?.shown }
    /// The hosts, addresses and others it is for.
    public var subjectAlternativeNames: [Name] { facts.names.map(Name.init) }
    /// It is not valid before.
    public var notBefore: Date { Date(timeIntervalSince1970: Double(facts.notBefore)) }
    /// It is not valid after.
    public var notAfter: Date { Date(timeIntervalSince1970: Double(facts.notAfter)) }
    /// Its number at its issuer, in hexadecimal.
    public var serialNumber: String { facts.serialNumber.hexadecimal }
    public var publicKey: PublicKey {
        let key = facts.key
        return PublicKey(algorithm: key.kind.name, bits: key.bits)
    }
    /// How its issuer has signed it, such as `ecdsa-with-SHA256`.
    public var signatureAlgorithm: String { facts.signatureAlgorithm }
    /// Whether it says it may vouch for others.
    public var isCertificateAuthority: Bool { facts.isAuthority }
    /// Whether it vouches for itself, by its names.
    public var isSelfIssued: Bool { facts.subject == facts.issuer }

    /// The SHA-256 of its public key as it stands there (SubjectPublicKeyInfo), 32 bytes: what pins hold against it.
    public var publicKeySHA256: Data { Data(facts.publicKeySHA256) }
    /// The SHA-256 of all of it, 32 bytes.
    public var sha256: Data { Data(facts.sha256) }
    /// As it is on the wire.
    public var der: Data { Data(facts.der) }
    /// The same as text.
    public var pem: String {
        let lines = Data(facts.der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----\n"
    }

    /// `CN=example.org from CN=Example CA until 2030-01-01`.
    public var description: String {
        "\(subject) from \(issuer) until \(notAfter.formatted(.iso8601.year().month().day()))"
    }

    public static func == (a: Certificate, b: Certificate) -> Bool { a.facts.der == b.facts.der }
    public func hash(into hasher: inout Hasher) { hasher.combine(facts.sha256) }
}

extension Certificate.Name {
    fileprivate init(_ name: CertificateFacts.Name) {
        self =
            switch name {
            case .dns(let text): .dns(text)
            case .ip(let bytes): .address(TLSPeerName.ip(bytes).description.trimmingBrackets)
            case .email(let text): .email(text)
            case .uri(let text): .uri(text)
            case .other(let tag): .other(tag)
            }
    }
}

extension CertificateFacts.KeyKind {
    fileprivate var name: String {
        switch self {
        case .rsa: "RSA"
        case .ec(let curve): curve.isEmpty ? "EC" : "EC \(curve)"
        case .ed25519: "Ed25519"
        case .ed448: "Ed448"
        case .other(let name): name
        }
    }
}

extension String {
    /// A certificate may say anything: what would move a terminal's cursor, or end a line, is written out.
    fileprivate var shown: String {
        guard unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) }) else {
            return self
        }
        return unicodeScalars.reduce(into: "") { text, scalar in
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            if isControl {
                text += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    fileprivate var trimmingBrackets: String {
        hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
    }
}

extension [UInt8] {
    fileprivate var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
