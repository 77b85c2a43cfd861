// SPDX-License-Identifier: Apache-2.0

// The TLS settings of a caller, as a value. Connections and TLS sessions of different configurations are never shared,
// so the configuration is part of every pool's key.

package enum TLSVersion: Int32, Sendable, Hashable, Comparable {
    // The version numbers on the wire (RFC 2246, RFC 4346, RFC 5246, RFC 8446).
    case tls10 = 0x0301
    case tls11 = 0x0302
    case tls12 = 0x0303
    case tls13 = 0x0304

    package static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }
}

package struct TLSConfiguration: Sendable, Hashable {
    /// The trusted root certificates.
    package enum Roots: Sendable, Hashable {
        /// The system's roots; see `TrustStore.system`.
        case system
        /// Only the certificates of a PEM file.
        case file(String)
        /// Only these PEM certificates.
        case pem([UInt8])
        /// The system's roots and these PEM certificates.
        case systemAnd([UInt8])
    }

    package enum Verification: Sendable, Hashable {
        /// Checks the chain, its dates and purpose, and the peer's name.
        case full
        /// Checks nothing: any peer is accepted. Encryption without verification does not protect from an attacker on
        /// the path.
        case unsafeNone
    }

    /// How a stapled certificate status is used (OCSP, RFC 6066 §8).
    package enum Staples: Sendable, Hashable {
        /// No status is requested.
        case ignored
        /// A revoked status fails the handshake; a missing one does not.
        case ifPresent
        /// A good status is required.
        case required
    }

    /// TLS 1.2 at least; lower ones are a concession to a peer.
    package var minimumVersion = TLSVersion.tls12
    package var maximumVersion = TLSVersion.tls13
    package var roots = Roots.system
    package var verification = Verification.full
    /// The protocols offered with ALPN, in order of preference (RFC 7301); if empty, ALPN is not used.
    package var applicationProtocols: [String] = []
    package var staples = Staples.ignored
    /// OpenSSL's security level: weaker keys and digests are refused. Level 2 means 112 bits.
    package var securityLevel: Int32 = 2
    package var pins: [TLSRule<[TLSPin]>] = []
    /// Client identities; a server that requests one gets the first whose pattern matches.
    package var identities: [TLSRule<TLSIdentity>] = []

    /// What is accepted of old peers: the first rule whose pattern matches.
    package var concessions: [TLSRule<TLSConcessions>] = []
    /// Whether a handshake with an origin pauses for an issuer that the server did not send (`TLSQuestion.issuer`).
    package var fetchesMissingIssuers = false

    /// Tells these settings from others of the same caller; see `TLSTransport.settingsNumber`.
    package var number = 0

    package init() {}

    /// Returns all pins for a peer; `nil` if it is not pinned. A matching rule without pins accepts no certificate.
    func pins(for name: TLSPeerName) -> [TLSPin]? {
        guard !pins.isEmpty, case let rules = pins.filter({ $0.pattern.matches(name) }), !rules.isEmpty else {
            return nil
        }
        return rules.flatMap(\.value)
    }

    /// Returns the concessions to a peer; `nil` for none.
    func concessions(to name: TLSPeerName) -> TLSConcessions? {
        concessions.first { $0.pattern.matches(name) }?.value
    }

    func identity(for name: TLSPeerName) -> TLSIdentity? {
        identities.first { $0.pattern.matches(name) }?.value
    }
}
