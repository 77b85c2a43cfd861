// Certificates made at run time, right and wrong in every way that a client must notice: no file,
// and nothing that expires on the day after the release.

import URLLoadingCOpenSSL

/// A certificate authority that lives as long as a test.
///
/// ```swift
/// let authority = try TestCertificateAuthority(commonName: "Test root")
/// let identity = try authority.issue(.init(names: ["example.org", "*.example.org"]))
/// // The server uses identity.certificatePEM and identity.keyPEM; the client trusts authority.pem.
/// ```
///
/// Keys are EC P-256. It signs whatever it is asked to, also what no authority should.
public struct TestCertificateAuthority: Sendable {
    private let certificate: TestCertificate
    private let key: TestKey
    /// The authorities between the root and this one, nearest first, as a server shows them.
    private let intermediates: [[UInt8]]

    /// Makes a root: a key, and a certificate that it signs itself.
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

    /// The authority's own certificate in PEM: what a client that trusts it is given.
    ///
    /// ```swift
    /// try Data(authority.pem).write(to: rootsFile)
    /// ```
    public var pem: [UInt8] { certificate.pem }

    /// Issues a certificate and the key that belongs to it.
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

    /// What an authority may say of a certificate.
    public enum Status: Sendable, Hashable {
        case good
        case revoked
        /// Good, until yesterday.
        case outdated
    }

    /// A word on a certificate that this authority has issued, to be stapled to it (OCSP, RFC 6960); in DER.
    ///
    /// ```swift
    /// tls.stapledStatus = try authority.status(of: identity, .revoked)
    /// ```
    public func status(of identity: TestIdentity, _ status: Status) throws -> [UInt8] {
        try TestStatusMaking.bytes(status, of: identity.certificate, certificate, key)
    }

    /// Issues an authority below this one. Its identities carry it in their chain.
    ///
    /// ```swift
    /// let imposter = try authority.intermediate(commonName: "Not a CA", isAuthority: false)
    /// let rejected = try imposter.issue(.init(names: ["example.org"]))
    /// ```
    ///
    /// - Parameters:
    ///   - commonName: What it calls itself.
    ///   - isAuthority: Whether its certificate says CA:TRUE. Without, nothing it issues may pass.
    ///   - pathLength: How many authorities may follow it; any number if nil.
    ///   - permittedNames: Domains it may vouch for (name constraints); all if empty.
    public func intermediate(
        commonName: String, isAuthority: Bool = true, pathLength: Int? = nil, permittedNames: [String] = []
    ) throws -> TestCertificateAuthority {
        let key = try TestKey()
        var form = TestCertificateForm(commonName: commonName)
        form.isAuthority = isAuthority
        form.pathLength = pathLength
        form.permittedNames = permittedNames
        let made = try TestCertificate(form, of: key, issuer: certificate, signedBy: self.key)
        return TestCertificateAuthority(certificate: made, key: key, intermediates: [made.pem] + intermediates)
    }
}

/// What a certificate is to say.
///
/// ```swift
/// let options = TestCertificateOptions(names: ["example.org"], addresses: [[127, 0, 0, 1]])
/// ```
public struct TestCertificateOptions: Sendable {
    /// When a certificate is valid, seen from now.
    public enum Validity: Sendable {
        /// From yesterday until tomorrow.
        case present
        /// Until yesterday.
        case past
        /// From tomorrow.
        case future
        /// From and until so many seconds from now.
        case seconds(from: Int, until: Int)
    }

    /// A kind of key.
    public enum Key: Sendable, Hashable {
        case ec256
        /// Of so many bits; fewer than 2048 are too weak for anybody today.
        case rsa(Int)
    }

    /// The DNS names of subjectAltName, taken as they are: wildcards and zero bytes too.
    public var names: [String]
    /// The addresses of subjectAltName, each of 4 or 16 bytes.
    public var addresses: [[UInt8]]
    /// The subject's common name, which is no name a client may accept.
    public var commonName: String
    /// When it is valid.
    public var validity: Validity
    /// What it is for: true for servers, false for clients only (extended key usage).
    public var isForServers: Bool
    /// What kind of key it is for.
    public var key = Key.ec256
    /// Signed by its own key instead of the authority's.
    public var isSelfSigned: Bool
    /// Names the authority, but is signed by another key.
    public var hasBadSignature: Bool

    /// Makes options; without arguments those of a plain certificate for `localhost`.
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

/// A certificate with its chain, and the key that belongs to it.
///
/// ```swift
/// let identity = try authority.issue()
/// print(String(decoding: identity.certificatePEM, as: UTF8.self))
/// ```
public struct TestIdentity: Sendable {
    /// The certificate, then the authorities between it and the root, in PEM.
    public let certificatePEM: [UInt8]
    /// The private key in PEM, unencrypted.
    public let keyPEM: [UInt8]
    let certificate: TestCertificate
    let key: TestKey

    /// The private key in PEM, encrypted.
    public func keyPEM(passphrase: String) throws -> [UInt8] { try key.pem(passphrase: passphrase) }

    /// Certificate and key, without those in between, as `.p12` files hold them.
    public func pkcs12(passphrase: String) throws -> [UInt8] { try key.pkcs12(certificate, passphrase: passphrase) }
}

/// OpenSSL refused to make a certificate.
///
/// ```swift
/// catch let error as TestCertificateError { print(error.step) }
/// ```
public struct TestCertificateError: Error, Sendable {
    /// What was being made.
    public let step: String
}
