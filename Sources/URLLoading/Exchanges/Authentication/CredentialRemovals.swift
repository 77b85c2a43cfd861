// SPDX-License-Identifier: Apache-2.0

// The credentials that the stores of a session have removed, in order. A load that logs in with a credential while a
// store removes it does not bring the credential back; the removal of another credential does not concern that load.

struct CredentialRemovals: Sendable {
    /// All removals so far. The number of a removal is the count that it makes.
    private(set) var count = 0
    /// The number of the last removal of everything.
    private var ofAll = 0
    /// The number of the last removal of one credential.
    private var numbers: [Removed: Int] = [:]

    private struct Removed: Hashable {
        let server: Authenticator.Server
        /// `nil` for every realm of the server.
        let realm: String?
        let user: String
    }
    /// The most removals that are told apart. The next one counts as a removal of everything.
    static let most = 1024

    mutating func note(_ credential: Credential, for space: ProtectionSpace) {
        guard numbers.count < Self.most else { return noteAll() }
        count += 1
        numbers[Removed(server: .init(space), realm: space.realm, user: credential.user)] = count
    }

    mutating func noteAll() {
        count += 1
        ofAll = count
        numbers = [:]
    }

    /// Whether the credential of a login was removed after the first `earlier` removals.
    func contains(_ login: Login, since earlier: Int) -> Bool {
        guard count > earlier else { return false }
        guard ofAll <= earlier else { return true }
        let server = Authenticator.Server(login.space)
        let realms = [login.space.realm, nil]
        return realms.contains { realm in
            numbers[Removed(server: server, realm: realm, user: login.credential.user)] ?? 0 > earlier
        }
    }
}
