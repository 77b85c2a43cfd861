// SPDX-License-Identifier: Apache-2.0

// Failures of authentication: of the server's certificate, and of this client's certificate or credentials.

import URLLoadingIO

extension LoadError.Reason {
    /// The certificate is signed by its own key, and is not a trusted root.
    public static let certificateSelfSigned = Self("certificateSelfSigned", -1202)
    /// A key or a signature in the chain is weaker than ``Configuration/TLS/minimumStrength``.
    public static let certificateWeak = Self("certificateWeak", -1202)
    /// The server's signature of the handshake, or its key exchange, is weaker than
    /// ``Configuration/TLS/minimumStrength``.
    public static let weakHandshake = Self("weakHandshake", -1200)
    /// The server does not support secure renegotiation (RFC 5746):
    /// ``Configuration/TLS/UnsafeConcessions/allowsInsecureRenegotiation`` accepts it.
    public static let insecureRenegotiation = Self("insecureRenegotiation", -1200)
    /// A signature in the chain is not its issuer's.
    public static let certificateSignatureInvalid = Self("certificateSignatureInvalid", -1202)
    /// The chain holds none of the pins of this host.
    public static let certificatePinMismatch = Self("certificatePinMismatch", -1202)
    /// The required stapled OCSP response is missing or invalid.
    public static let certificateStatusMissing = Self("certificateStatusMissing", -1202)
    /// A challenge decision refused the certificate.
    public static let certificateRefused = Self("certificateRefused", -1202)
    /// The server refused the client certificate.
    public static let clientCertificateRefused = Self("clientCertificateRefused", -1205)
    /// The client certificate and key cannot be parsed or used.
    public static let badClientIdentity = Self("badClientIdentity", -1206)
    /// The private key is encrypted, and the given passphrase does not decrypt it.
    public static let wrongPassphrase = Self("wrongPassphrase", -1206)
    /// An authentication scheme failed midway: the peer's message was invalid, the peer failed mutual authentication,
    /// or a library that the scheme needs is not installed.
    public static let authenticationFailed = Self("authenticationFailed", -1013)
    /// A host pattern is not valid.
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
            case .protocolVersion, .noCommonCipher, .alert(70), .unusableVersions: .noCommonTLSVersion
            case .weakHandshake: .weakHandshake
            case .insecureRenegotiation: .insecureRenegotiation
            case .notTLS: .notTLS
            case .truncated: .truncated
            case .rootsUnavailable: .trustRootsUnavailable
            case .alert, .handshakeEndedByPeer, .unusableName, .other: .secureConnectionFailed
            }
    }
}

/// Carries the evaluated trust of a server, and what would help, inside a `LoadError`. Internal, so that callers match
/// on the reason instead.
struct TrustFailure: ErrorCarrier {
    let trust: ServerTrust?
    var remedies: [LoadError.TLSRemedy] = []
}

extension LoadError {
    init(_ failure: TLSFailure, _ phase: Phase) {
        let isLocal =
            switch failure.kind {
            case .rootsUnavailable, .unusableName, .refused, .identityUnusable, .unusableVersions: true
            default: false
            }
        let words = failure.name.map { "\($0): \(failure.detail)" } ?? failure.detail
        self.init(
            Reason(failure.kind), phase: phase, party: isLocal ? .local : .remote, detail: words,
            underlying: failure.trust == nil && failure.remedies.isEmpty
                ? nil
                : TrustFailure(
                    trust: failure.trust.map { ServerTrust($0) },
                    remedies: failure.remedies.map { LoadError.TLSRemedy($0) }))
    }
}
