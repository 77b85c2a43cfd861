// What a caller asks of TLS, as a value: connections and sessions made under different
// configurations never meet, so it is part of the key of every pool.

package enum TLSVersion: Int32, Sendable, Hashable, Comparable {
    // The numbers are those on the wire (RFC 5246, RFC 8446).
    case tls12 = 0x0303
    case tls13 = 0x0304

    package static func < (a: TLSVersion, b: TLSVersion) -> Bool { a.rawValue < b.rawValue }
}

package struct TLSConfiguration: Sendable, Hashable {
    /// Whose word is taken for who the peer is.
    package enum Roots: Sendable, Hashable {
        /// What the system trusts; see `TrustStore.system`.
        case system
        /// A file of PEM certificates, and nobody else.
        case file(String)
        /// PEM certificates, and nobody else.
        case pem([UInt8])
        /// What the system trusts and these PEM certificates.
        case systemAnd([UInt8])
    }

    package enum Verification: Sendable, Hashable {
        /// The chain, its dates and purpose, and the peer's name.
        case full
        /// Nothing: whoever answers is believed. Encryption without this protects from nobody who
        /// can stand in the way.
        case unsafeNone
    }

    /// What is made of a status that the server staples to its certificate (OCSP, RFC 6066 8).
    package enum Staples: Sendable, Hashable {
        /// None is asked for.
        case ignored
        /// One that says revoked is heard; that there is none means nothing.
        case heard
        /// There must be one, and it must be good.
        case required
    }

    package var minimumVersion = TLSVersion.tls12
    package var maximumVersion = TLSVersion.tls13
    package var roots = Roots.system
    package var verification = Verification.full
    /// The protocols offered, best first (RFC 7301); none offers none.
    package var applicationProtocols: [String] = []
    package var staples = Staples.ignored
    /// Keys and digests weaker than this are refused: OpenSSL's levels, of which 2 is 112 bits.
    package var securityLevel: Int32 = 2
    package var pins: [TLSRule<[TLSPin]>] = []
    /// The first that fits is given to a server that asks.
    package var identities: [TLSRule<TLSIdentity>] = []

    package init() {}

    /// All that are pinned for a peer; `nil` if none is. A rule without pins fits, and nothing matches it.
    func pins(for name: TLSPeerName) -> [TLSPin]? {
        guard !pins.isEmpty, case let rules = pins.filter({ $0.pattern.matches(name) }), !rules.isEmpty else {
            return nil
        }
        return rules.flatMap(\.value)
    }

    func identity(for name: TLSPeerName) -> TLSIdentity? {
        identities.first { $0.pattern.matches(name) }?.value
    }
}
