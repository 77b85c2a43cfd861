// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
package import URLLoadingIO

/// The contents of an X.509 certificate (RFC 5280).
///
/// ```swift
/// for certificate in trust.certificates {
///     print(certificate.subject, certificate.notAfter, certificate.publicKey)
/// }
/// ```
/// The values are claims of the certificate and not verified. ``ServerTrust/isTrusted`` tells whether its chain was.
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
    package let facts: CertificateFacts

    init(_ facts: CertificateFacts) { self.facts = facts }

    /// A subject alternative name (RFC 5280 §4.2.1.6).
    public enum Name: Sendable, Hashable, CustomStringConvertible {
        /// A host name as it is written in the certificate; may contain wildcards and zero bytes.
        case dns(String)
        /// An address, such as `192.0.2.1` or `2001:db8::1`.
        case address(String)
        /// An e-mail address.
        case email(String)
        /// A URI.
        case uri(String)
        /// A name of another kind, with the number of its tag.
        case other(Int)

        public var description: String {
            switch self {
            case .dns(let name), .address(let name), .email(let name), .uri(let name): name.shown
            case .other(let tag): "[\(tag)]"
            }
        }
    }

    /// The algorithm and the size of a public key.
    public struct PublicKey: Sendable, Hashable, CustomStringConvertible {
        /// The algorithm: `RSA`, `EC prime256v1`, `Ed25519` or the name of another.
        public let algorithm: String
        /// The size in bits: of an RSA key the modulus, of others the field.
        public let bits: Int
        /// The algorithm and the size: `RSA 2048`, `EC prime256v1`.
        public var description: String { algorithm.contains(" ") ? algorithm : "\(algorithm) \(bits)" }
    }

    /// Reads a certificate.
    /// - Parameter der: exactly one certificate in DER; `nil` for other data.
    public init?(der: some Collection<UInt8>) {
        guard let facts = CertificateFacts(der: Array(der)) else { return nil }
        self.facts = facts
    }

    /// Reads the first certificate of a text in PEM (RFC 7468 §5), for example to pin the key of a file.
    ///
    /// ```swift
    /// let pin = Certificate(pem: try String(contentsOf: file, encoding: .utf8))?.pin
    /// ```
    /// - Parameter pem: text with a certificate between its marks; `nil` for other text.
    public init?(pem: String) {
        guard let begin = pem.firstRange(of: "-----BEGIN CERTIFICATE-----")?.upperBound,
            let end = pem[begin...].firstRange(of: "-----END CERTIFICATE-----")?.lowerBound,
            let der = Data(base64Encoded: pem[begin..<end].filter { !$0.isWhitespace })
        else { return nil }
        self.init(der: der)
    }

    /// The subject in the format of RFC 4514, such as `CN=example.org,O=Example`. Clients match hosts with
    /// ``subjectAlternativeNames`` instead.
    public var subject: String { facts.subject.shown }
    /// The issuer in the format of RFC 4514.
    public var issuer: String { facts.issuer.shown }
    /// The first common name of ``subject``. Not used to match hosts (RFC 9525).
    public var commonName: String? { facts.commonName?.shown }
    /// The hosts, addresses and other names that the certificate is valid for.
    public var subjectAlternativeNames: [Name] { facts.names.map(Name.init) }
    /// The beginning of the validity period.
    public var notBefore: Date { Date(timeIntervalSince1970: Double(facts.notBefore)) }
    /// The end of the validity period.
    public var notAfter: Date { Date(timeIntervalSince1970: Double(facts.notAfter)) }
    /// The serial number, in hexadecimal.
    public var serialNumber: String { facts.serialNumber.hexadecimal }
    /// The algorithm and the size of the public key.
    public var publicKey: PublicKey {
        let key = facts.key
        return PublicKey(algorithm: key.kind.name, bits: key.bits)
    }
    /// The signature algorithm, such as `ecdsa-with-SHA256`.
    public var signatureAlgorithm: String { facts.signatureAlgorithm }
    /// Whether the certificate claims to be a certificate authority's (basic constraints).
    public var isCertificateAuthority: Bool { facts.isAuthority }
    /// Whether subject and issuer are equal.
    public var isSelfIssued: Bool { facts.subject == facts.issuer }

    /// The SHA-256 of the public key (SubjectPublicKeyInfo), 32 bytes: the value that pins are compared with.
    public var publicKeySHA256: Data { Data(facts.publicKeySHA256) }
    /// The SHA-256 of the certificate in DER, 32 bytes.
    public var sha256: Data { Data(facts.sha256) }
    /// The certificate in DER.
    public var der: Data { Data(facts.der) }
    /// The certificate in PEM.
    public var pem: String {
        let lines = Data(facts.der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----\n"
    }

    /// The subject, the issuer and the expiry: `CN=example.org from CN=Example CA until 2030-01-01`.
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
    /// The text with control characters escaped, since a certificate may contain sequences that control a terminal.
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
