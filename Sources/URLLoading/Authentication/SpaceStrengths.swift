// What is remembered of protection spaces against weaker schemes (security 65).
//
// A protection space is a server's root and a realm (RFC 9110 §11.5), so Digest in one realm says nothing of Basic in
// another. A scheme without a realm (NTLM, Negotiate) is asked for the whole server, and counts for every realm of it.

/// The strongest scheme that each realm of one server was opened by.
struct SpaceStrengths: Sendable, Equatable {
    /// Schemes without a realm.
    private var server = 0
    private var realms: [Int: Int] = [:]
    /// A server that gives every path a realm of its own has one strength for all, the greatest.
    private static let mostRealms = 32

    mutating func note(_ strength: Int, realm: String?) {
        guard let realm else {
            server = max(server, strength)
            return
        }
        // A hash in place of a text that the server may make as long as a field: two realms of one hash share a strength.
        let key = realm.hashValue
        guard realms[key] != nil || realms.count < Self.mostRealms else {
            server = max(self.strength(realm: nil), strength)
            realms = [:]
            return
        }
        realms[key] = max(realms[key] ?? 0, strength)
    }

    /// The strongest scheme of a realm; without one, of the whole server.
    func strength(realm: String?) -> Int {
        max(server, realm.map { realms[$0.hashValue] ?? 0 } ?? realms.values.max() ?? 0)
    }
}

/// A credential that a protection space refused when it was sent with one method.
struct CredentialRefusal: Sendable {
    let credential: Credential
    let space: ProtectionSpace
    let strength: Int

    /// Whether the same would be sent once more. Basic and Bearer say the same in every realm.
    func isRepeated(by credential: Credential, in other: ProtectionSpace) -> Bool {
        guard space.method == other.method, self.credential.proves(sameAs: credential) else { return false }
        return space.realm == other.realm || space.method == .basic || space.method == .bearer
    }

    /// Whether the same secret would be sent in a weaker way to a protection space that has a part in common with this one.
    func isWeakened(by credential: Credential, in other: ProtectionSpace, strength: Int) -> Bool {
        guard strength < self.strength, self.credential.proves(sameAs: credential) else { return false }
        return space.realm == other.realm || space.realm == nil || other.realm == nil
    }
}
