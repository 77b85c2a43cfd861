// Why a secure connection was not made or ended, by the check that failed.

package struct TLSFailure: Error, Sendable {
    package enum Kind: Sendable, Hashable {
        // The certificate.
        case expired
        case notYetValid
        /// The peer vouches for itself.
        case selfSigned
        /// Nobody we trust vouches for it.
        case untrustedIssuer
        case nameMismatch
        /// Not made for servers (extended key usage).
        case wrongPurpose
        case badSignature
        case revoked
        /// Somebody in the chain may not vouch, or not for this: no CA, too long, name constraints.
        case invalidChain
        /// A key or a digest below the security level.
        case weakCryptography
        /// None of the keys that were to be there is.
        case pinMismatch
        /// The status that was to be stapled is not there, or is worth nothing.
        case statusMissing
        /// A decision did not want it.
        case refused

        // Our own identity.
        /// The peer wants one.
        case identityRequired
        /// The peer did not take the one it got.
        case identityRefused
        /// OpenSSL cannot use it: its key is too weak, or fits no cipher.
        case identityUnusable

        // The handshake.
        case protocolVersion
        case noCommonCipher
        /// The peer gave up, with this number (RFC 8446 6).
        case alert(UInt8)
        /// The peer speaks something else, mostly plain text.
        case notTLS
        case handshakeEndedByPeer

        /// The connection ended without close_notify: what came before may have been cut.
        case truncated

        // Our own side.
        /// The trusted certificates could not be read from here.
        case rootsUnavailable(String)
        /// The name to check is no name that a certificate can hold.
        case unusableName
        case other
    }

    package let kind: Kind
    /// The name that was checked, or would have been.
    package let name: TLSPeerName?
    /// OpenSSL's own words, for the log; never shown without the kind.
    package let detail: String
    /// What the peer showed, its own certificate first, in DER.
    package let chain: [[UInt8]]
    /// What was found out about it, if that was why.
    package let trust: TLSTrust?

    package init(_ kind: Kind, name: TLSPeerName? = nil, detail: String, chain: [[UInt8]] = [], trust: TLSTrust? = nil)
    {
        self.kind = kind
        self.name = name
        self.detail = detail
        self.chain = chain
        self.trust = trust
    }
}
