// SPDX-License-Identifier: Apache-2.0

// A server's Digest challenge (RFC 7616 §3.3). Pure; the hash function is passed in where it is needed.

/// A Digest challenge that can be answered.
package struct DigestChallenge: Sendable, Hashable {
    /// Hash algorithms, from weakest to strongest; clients use the strongest that they support (RFC 7616 §3.7).
    package enum Hash: String, Sendable, Hashable, CaseIterable, Comparable {
        case md5 = "MD5"
        case sha256 = "SHA-256"
        case sha512_256 = "SHA-512-256"

        package static func < (a: Hash, b: Hash) -> Bool {
            (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
        }
    }
    /// The quality of protection: the part of the request that the digest covers.
    package enum Protection: String, Sendable, Hashable {
        /// Covers method and target.
        case auth
        /// Covers the body too.
        case integrity = "auth-int"
    }

    package let realm: String
    /// The nonce; replaced by a `nextnonce` that the server sends with a response.
    package var nonce: String
    package let opaque: String?
    package let hash: Hash
    /// `-sess`: the credentials are hashed with the first nonce and cnonce.
    package let isSession: Bool
    /// Empty for a server of RFC 2069, which has no quality of protection.
    package let protections: Set<Protection>
    /// True if only the nonce had expired: the same credential may be used again.
    package let isStale: Bool
    /// True if the user name is sent as a hash.
    package let hashesUser: Bool
    /// The URI references of `domain`, as written.
    package let domain: [String]

    /// True if the server accepts only digests that cover the body.
    package var needsBody: Bool { !protections.isEmpty && !protections.contains(.auth) }

    /// Returns whether a response to this challenge proves less than one to `other`: it includes no value chosen by the
    /// client, or does not cover the body.
    package func isWeaker(than other: DigestChallenge) -> Bool {
        protections.isEmpty && !other.protections.isEmpty || other.needsBody && !needsBody
    }

    /// Creates a challenge; `nil` if it cannot be answered: realm or nonce is missing, or the algorithm or quality of
    /// protection is not supported.
    package init?(_ challenge: AuthenticationChallenge) {
        guard challenge.isOf("Digest"), let realm = challenge["realm"], let nonce = challenge["nonce"],
            let (hash, isSession) = Self.algorithm(challenge["algorithm"] ?? "MD5")
        else { return nil }
        let offered = challenge["qop"].map { $0.lowercasedASCII.split { $0 == "," || $0 == " " || $0 == "\t" } }
        protections = Set((offered ?? []).compactMap { Protection(rawValue: String($0)) })
        if let offered, !offered.isEmpty, protections.isEmpty { return nil }
        // A session key requires a cnonce, which RFC 2069 does not have.
        if isSession, protections.isEmpty { return nil }
        self.realm = realm
        self.nonce = nonce
        self.hash = hash
        self.isSession = isSession
        opaque = challenge["opaque"]
        isStale = challenge["stale"]?.lowercasedASCII == "true"
        hashesUser = challenge["userhash"]?.lowercasedASCII == "true"
        domain = (challenge["domain"] ?? "").split(separator: " ").map(String.init)
    }

    private static func algorithm(_ text: String) -> (Hash, Bool)? {
        let lowered = text.lowercasedASCII
        let isSession = lowered.hasSuffix("-sess")
        let name = isSession ? String(lowered.dropLast(5)) : lowered
        return Hash.allCases.first { $0.rawValue.lowercasedASCII == name }.map { ($0, isSession) }
    }
}
