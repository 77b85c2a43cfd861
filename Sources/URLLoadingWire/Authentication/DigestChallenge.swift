// What a server says for Digest (RFC 7616 §3.3). Pure; what hashes is passed in where it is needed.

/// A challenge of Digest that can be answered.
package struct DigestChallenge: Sendable, Hashable {
    /// From the weakest to the strongest (RFC 7616 §3.7: clients take the strongest they know).
    package enum Hash: String, Sendable, Hashable, CaseIterable, Comparable {
        case md5 = "MD5"
        case sha256 = "SHA-256"
        case sha512_256 = "SHA-512-256"

        package static func < (a: Hash, b: Hash) -> Bool {
            (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
        }
    }
    /// How much of the request is proved.
    package enum Protection: String, Sendable, Hashable {
        /// Method and target.
        case auth
        /// The body too.
        case integrity = "auth-int"
    }

    package let realm: String
    /// Replaced by what the server gives with an answer (`nextnonce`).
    package var nonce: String
    package let opaque: String?
    package let hash: Hash
    /// `-sess`: the credentials are hashed with the first nonce and cnonce.
    package let isSession: Bool
    /// Empty for a server of RFC 2069, which knows no quality of protection.
    package let protections: Set<Protection>
    /// The last nonce had become too old: the same credential is good for another try.
    package let isStale: Bool
    /// The user's name is sent as a hash.
    package let hashesUser: Bool
    /// The references of `domain`, as they are written.
    package let domain: [String]

    /// The server takes no answer that leaves the body out.
    package var needsBody: Bool { !protections.isEmpty && !protections.contains(.auth) }

    /// Whether an answer to it proves less than one to another: nothing that the client has chosen, or no body.
    package func provesLess(than other: DigestChallenge) -> Bool {
        protections.isEmpty && !other.protections.isEmpty || other.needsBody && !needsBody
    }

    /// `nil` if the challenge cannot be answered: no realm or nonce, an algorithm or a quality of protection that is
    /// not known here.
    package init?(_ challenge: AuthenticationChallenge) {
        guard challenge.isOf("Digest"), let realm = challenge["realm"], let nonce = challenge["nonce"],
            let (hash, isSession) = Self.algorithm(challenge["algorithm"] ?? "MD5")
        else { return nil }
        let offered = challenge["qop"].map { $0.lowercasedASCII.split { $0 == "," || $0 == " " || $0 == "\t" } }
        protections = Set((offered ?? []).compactMap { Protection(rawValue: String($0)) })
        if let offered, !offered.isEmpty, protections.isEmpty { return nil }
        // A session key is made with a cnonce, which RFC 2069 does not have.
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
