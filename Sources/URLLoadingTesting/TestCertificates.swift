// SPDX-License-Identifier: Apache-2.0

// Certificates created at run time, valid and with every fault that a client must detect: no files, and no expiry dates
// to maintain.

/// A certificate authority for the duration of a test.
///
/// ```swift
/// let authority = try TestCertificateAuthority(commonName: "Test root")
/// let identity = try authority.issue(.init(names: ["example.org", "*.example.org"]))
/// // The server uses identity.certificatePEM and identity.keyPEM; the client trusts authority.pem.
/// ```
///
/// Keys are EC P-256. The authority signs anything, including certificates that no authority should sign.
///
/// Its methods throw ``TestCertificateError`` if OpenSSL refuses.
public struct TestCertificateAuthority: Sendable {
    private let certificate: TestCertificate
    private let key: TestKey
    /// The authorities between the root and this one, nearest first, as a server presents them.
    private let intermediates: [[UInt8]]

    /// Creates a root authority with a key and a self-signed certificate.
    ///
    /// ```swift
    /// let authority = try TestCertificateAuthority(commonName: "Test root")
    /// ```
    public init(commonName: String) throws {
        key = try TestKey()
        var form = TestCertificateForm(commonName: commonName)
        form.isAuthority = true
        certificate = try TestCertificate(form, of: key, issuer: nil, signedBy: key)
        intermediates = []
    }

    private init(certificate: TestCertificate, key: TestKey, intermediates: [[UInt8]]) {
        self.certificate = certificate
        self.key = key
        self.intermediates = intermediates
    }

    /// The authority's own certificate in PEM, for clients that are to trust it.
    ///
    /// ```swift
    /// try Data(authority.pem).write(to: rootsFile)
    /// ```
    public var pem: [UInt8] { certificate.pem }

    /// Issues a certificate with its private key.
    ///
    /// ```swift
    /// let expired = try authority.issue(.init(names: ["example.org"], validity: .past))
    /// ```
    public func issue(_ options: TestCertificateOptions = .init()) throws -> TestIdentity {
        let leafKey = try TestKey(options.key)
        let form = TestCertificateForm(options)
        let leaf =
            options.isSelfSigned
            ? try TestCertificate(form, of: leafKey, issuer: nil, signedBy: leafKey)
            : try TestCertificate(
                form, of: leafKey, issuer: certificate, signedBy: options.hasBadSignature ? try TestKey() : key)
        let chain = options.isSelfSigned ? [] : intermediates.flatMap { $0 }
        return TestIdentity(
            certificatePEM: leaf.pem + chain, keyPEM: try leafKey.pem(), certificate: leaf, key: leafKey)
    }

    /// The status of a certificate.
    public enum Status: Sendable, Hashable {
        /// Good.
        case good
        /// Revoked.
        case revoked
        /// Good, but expired yesterday.
        case outdated
    }

    /// Returns an OCSP response in DER for a certificate issued by this authority, to be stapled (RFC 6960).
    ///
    /// ```swift
    /// tls.ocspStapling = try authority.status(of: identity, .revoked)
    /// ```
    public func status(of identity: TestIdentity, _ status: Status) throws -> [UInt8] {
        try TestOCSPResponse.bytes(status, of: identity.certificate, certificate, key)
    }

    /// Returns such a response, good since some seconds ago, that does not say until when it is valid.
    package func statusWithoutEnd(of identity: TestIdentity, secondsAgo: Int) throws -> [UInt8] {
        try TestOCSPResponse.bytes(
            isRevoked: false, from: -secondsAgo, until: nil, of: identity.certificate, certificate, key)
    }

    /// Issues an intermediate authority. Identities that it issues include it in their chain.
    ///
    /// ```swift
    /// let imposter = try authority.intermediate(commonName: "Not a CA", isAuthority: false)
    /// let rejected = try imposter.issue(.init(names: ["example.org"]))
    /// ```
    ///
    /// - Parameters:
    ///   - commonName: its common name.
    ///   - isAuthority: whether its certificate states CA:TRUE. If not, clients must reject everything it issues.
    ///   - pathLength: how many authorities may follow it; `nil` for any number.
    ///   - permittedNames: the domains for which it may issue certificates (name constraints); empty for all.
    ///   - issuerLocations: as in ``TestCertificateOptions``.
    public func intermediate(
        commonName: String, isAuthority: Bool = true, pathLength: Int? = nil, permittedNames: [String] = [],
        issuerLocations: [String] = []
    ) throws -> TestCertificateAuthority {
        let key = try TestKey()
        var form = TestCertificateForm(commonName: commonName)
        form.isAuthority = isAuthority
        form.pathLength = pathLength
        form.permittedNames = permittedNames
        form.issuerLocations = issuerLocations
        let made = try TestCertificate(form, of: key, issuer: certificate, signedBy: self.key)
        return TestCertificateAuthority(certificate: made, key: key, intermediates: [made.pem] + intermediates)
    }
}

/// The content of a certificate.
///
/// ```swift
/// let options = TestCertificateOptions(names: ["example.org"], addresses: [[127, 0, 0, 1]])
/// ```
public struct TestCertificateOptions: Sendable {
    /// The validity period of a certificate, relative to now.
    public enum Validity: Sendable {
        /// From yesterday until tomorrow.
        case present
        /// Until yesterday.
        case past
        /// From tomorrow.
        case future
        /// From and until a number of seconds from now.
        case seconds(from: Int, until: Int)
    }

    /// A kind of key.
    public enum Key: Sendable, Hashable {
        /// An elliptic curve, P-256.
        case ec256
        /// RSA with this number of bits; clients reject fewer than 2048.
        case rsa(Int)
    }

    /// The DNS names of subjectAltName, unchanged, including wildcards and zero bytes.
    public var names: [String]
    /// The IP addresses of subjectAltName, each of 4 or 16 bytes.
    public var addresses: [[UInt8]]
    /// The subject's common name, which clients must not accept as a host name.
    public var commonName: String
    /// The validity period.
    public var validity: Validity
    /// The extended key usage: true for servers, false for clients only.
    public var isForServers: Bool
    /// The kind of the key.
    public var key = Key.ec256
    /// Signs with the certificate's own key instead of the authority's.
    public var isSelfSigned: Bool
    /// Names the authority as issuer, but signs with another key.
    public var hasBadSignature: Bool
    /// The addresses at which the certificate says that its issuer's can be fetched (Authority Information Access, RFC
    /// 5280 §4.2.2.1); none by default.
    public var issuerLocations: [String] = []

    /// Creates options; by default those of a plain certificate for `localhost`.
    ///
    /// ```swift
    /// let lazy = TestCertificateOptions(names: [], commonName: "example.org")  // no subjectAltName
    /// ```
    public init(
        names: [String] = ["localhost"], addresses: [[UInt8]] = [], commonName: String = "test",
        validity: Validity = .present, isForServers: Bool = true, isSelfSigned: Bool = false,
        hasBadSignature: Bool = false
    ) {
        self.names = names
        self.addresses = addresses
        self.commonName = commonName
        self.validity = validity
        self.isForServers = isForServers
        self.isSelfSigned = isSelfSigned
        self.hasBadSignature = hasBadSignature
    }
}

/// A certificate with its chain and private key.
///
/// ```swift
/// let identity = try authority.issue()
/// print(String(decoding: identity.certificatePEM, as: UTF8.self))
/// ```
public struct TestIdentity: Sendable {
    /// The certificate, followed by the intermediate authorities, in PEM.
    public let certificatePEM: [UInt8]
    /// The private key in PEM, unencrypted.
    public let keyPEM: [UInt8]
    let certificate: TestCertificate
    let key: TestKey

    /// Returns the private key in PEM, encrypted.
    public func keyPEM(passphrase: String) throws -> [UInt8] { try key.pem(passphrase: passphrase) }

    /// Returns certificate and key, without the intermediate authorities, as PKCS#12 (`.p12`).
    public func pkcs12(passphrase: String) throws -> [UInt8] { try key.pkcs12(certificate, passphrase: passphrase) }
}

/// OpenSSL failed to create a certificate.
///
/// ```swift
/// catch let error as TestCertificateError { print(error.step) }
/// ```
public struct TestCertificateError: Error, Sendable {
    /// The step that failed.
    public let step: String
}
