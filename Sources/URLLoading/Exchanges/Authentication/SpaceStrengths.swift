// SPDX-License-Identifier: Apache-2.0

// Remembers the schemes of protection spaces, to prevent a downgrade to weaker ones.
//
// A protection space is a server's root and a realm (RFC 9110 §11.5), so Digest in one realm says nothing about Basic
// in another. A scheme without a realm (NTLM, Negotiate) is offered for the whole server, and counts for every realm.

/// The strongest scheme that each realm of one server accepted.
struct SpaceStrengths: Sendable, Equatable {
    /// Schemes without a realm.
    private var server = 0
    private var realms: [Int: Int] = [:]
    /// Beyond this number of realms, one strength counts for all, the greatest.
    private static let maximumRealms = 32

    mutating func note(_ strength: Int, realm: String?) {
        guard let realm else {
            server = max(server, strength)
            return
        }
        // A hash instead of the realm, which the server may make as long as a field. Two realms with one hash share a
        // strength.
        let key = realm.hashValue
        guard realms[key] != nil || realms.count < Self.maximumRealms else {
            server = max(self.strength(realm: nil), strength)
            realms = [:]
            return
        }
        realms[key] = max(realms[key] ?? 0, strength)
    }

    /// Returns the strength of a realm, or of the whole server for nil.
    func strength(realm: String?) -> Int {
        max(server, realm.map { realms[$0.hashValue] ?? 0 } ?? realms.values.max() ?? 0)
    }
}

/// A credential that a protection space refused when it was sent with one method.
struct CredentialRefusal: Sendable {
    let credential: Credential
    let space: ProtectionSpace
    let strength: Int

    /// Whether the same secret would be sent again. Basic and Bearer send the same value in every realm.
    func isRepeated(by credential: Credential, in other: ProtectionSpace) -> Bool {
        guard space.method == other.method, self.credential.proves(sameAs: credential) else { return false }
        return space.realm == other.realm || space.method == .basic || space.method == .bearer
    }

    /// Whether the same secret would be sent with a weaker scheme to a protection space that overlaps this one.
    func isWeakened(by credential: Credential, in other: ProtectionSpace, strength: Int) -> Bool {
        guard strength < self.strength, self.credential.proves(sameAs: credential) else { return false }
        return space.realm == other.realm || space.realm == nil || other.realm == nil
    }
}
