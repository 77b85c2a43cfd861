// What goes wrong while a peer proves who it is, or we do.

import URLLoadingIO

extension LoadError.Reason {
    /// The server vouches for itself: nobody else does.
    public static let certificateSelfSigned = Self("certificateSelfSigned", -1202)
    /// A key or a signature in the chain is weaker than ``Configuration/TLS/minimumStrength``.
    public static let certificateWeak = Self("certificateWeak", -1202)
    /// A signature in the chain is not its issuer's.
    public static let certificateSignatureInvalid = Self("certificateSignatureInvalid", -1202)
    /// The chain holds none of the pins of this host.
    public static let certificatePinMismatch = Self("certificatePinMismatch", -1202)
    /// The status that must be stapled to the certificate is missing, or worth nothing.
    public static let certificateStatusMissing = Self("certificateStatusMissing", -1202)
    /// A decision did not want it.
    public static let certificateRefused = Self("certificateRefused", -1202)
    /// The server refused the certificate it got from us.
    public static let clientCertificateRefused = Self("clientCertificateRefused", -1205)
    /// What was given as our certificate and key is none, or cannot be used.
    public static let badClientIdentity = Self("badClientIdentity", -1206)
    /// The key is encrypted, and not with the passphrase that was given.
    public static let wrongPassphrase = Self("wrongPassphrase", -1206)
    /// A way to authenticate failed half-way: the peer said what cannot be answered, or did not prove itself where it
    /// wanted to; or what the way needs is not installed.
    public static let authenticationFailed = Self("authenticationFailed", -1013)
    /// It names no hosts.
    public static let badHostPattern = Self("badHostPattern", -1000)

    init(_ kind: TLSFailure.Kind) {
        self =
            switch kind {
            case .expired: .certificateExpired
            case .notYetValid: .certificateNotYetValid
            case .selfSigned: .certificateSelfSigned
            case .untrustedIssuer: .certificateUntrusted
            case .badSignature: .certificateSignatureInvalid
            case .weakCryptography: .certificateWeak
            case .nameMismatch: .certificateNameMismatch
            case .wrongPurpose, .invalidChain: .certificateInvalid
            case .revoked: .certificateRevoked
            case .pinMismatch: .certificatePinMismatch
            case .statusMissing: .certificateStatusMissing
            case .refused: .certificateRefused
            case .identityRequired, .alert(116): .clientCertificateRequired
            case .identityRefused: .clientCertificateRefused
            case .identityUnusable: .badClientIdentity
            case .protocolVersion, .noCommonCipher, .alert(70): .noCommonTLSVersion
            case .notTLS: .notTLS
            case .truncated: .truncated
            case .rootsUnavailable: .trustRootsUnavailable
            case .alert, .handshakeEndedByPeer, .unusableName, .other: .secureConnectionFailed
            }
    }
}

/// Carries what was found out about a server: nobody matches on it.
struct TrustFailure: Error {
    let trust: ServerTrust
}

extension LoadError {
    /// What the server has shown, and every check that failed; `nil` if it failed for something else.
    public var serverTrust: ServerTrust? { ((proxyFailure?.cause ?? underlying) as? TrustFailure)?.trust }
}
