// SPDX-License-Identifier: Apache-2.0

// The reason why a TLS connection failed, by the check that failed.

package struct TLSFailure: Error, Sendable {
    package enum Kind: Sendable, Hashable {
        // The server's certificate.
        case expired
        case notYetValid
        /// The certificate is self-signed.
        case selfSigned
        /// The chain leads to no trusted root.
        case untrustedIssuer
        case nameMismatch
        /// The certificate is not meant for servers (extended key usage).
        case wrongPurpose
        case badSignature
        case revoked
        /// A certificate in the chain may not issue the next one: not a CA, path too long, or name constraints.
        case invalidChain
        /// A key or digest is below the security level.
        case weakCryptography
        /// No key in the chain matches a pin.
        case pinMismatch
        /// The required stapled status is missing or unusable.
        case statusMissing
        /// A decision refused the certificate.
        case refused

        // The client certificate.
        /// The peer requires a client certificate.
        case identityRequired
        /// The peer rejected the client certificate.
        case identityRefused
        /// OpenSSL cannot use the client certificate: its key is too weak or fits no cipher.
        case identityUnusable

        // The handshake.
        case protocolVersion
        case noCommonCipher
        /// The server's signature of the handshake, or its ephemeral key, is below the security level.
        case weakHandshake
        /// The server does not support secure renegotiation (RFC 5746).
        case insecureRenegotiation
        /// The peer aborted with this alert (RFC 8446 §6).
        case alert(UInt8)
        /// The peer does not speak TLS; mostly it answers in plain text.
        case notTLS
        case handshakeEndedByPeer

        /// The connection ended without close_notify, so the data received may be incomplete.
        case truncated

        // The local side.
        /// The trusted certificates could not be read from this file.
        case rootsUnavailable(String)
        /// The range of versions is empty, or begins below TLS 1.2 without a concession.
        case unusableVersions
        /// The name to verify cannot appear in a certificate.
        case unusableName
        case other
    }

    package let kind: Kind
    /// The name that was, or would have been, verified.
    package let name: TLSPeerName?
    /// OpenSSL's message for the log; never shown without the kind.
    package let detail: String
    /// The certificates that the peer presented, its own first, in DER.
    package let chain: [[UInt8]]
    /// The result of the certificate's verification, if that was the reason.
    package let trust: TLSTrust?
    /// The settings with which the handshake could succeed.
    package let remedies: [TLSRemedy]

    package init(
        _ kind: Kind, name: TLSPeerName? = nil, detail: String, chain: [[UInt8]] = [], trust: TLSTrust? = nil,
        remedies: [TLSRemedy] = []
    ) {
        self.kind = kind
        self.name = name
        self.detail = detail
        self.chain = chain
        self.trust = trust
        self.remedies = remedies
    }
}
