// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Security 10: sessions do not use credentials that were removed from their store.
@Suite(.timeLimit(.minutes(4))) struct LogoutRows {
    private func with(_ use: (HTTPTestServer, Session, CredentialStore) async throws -> Void) async throws {
        let store = CredentialStore()
        var configuration = Configuration.ephemeral
        configuration.authentication.credentialStore = store
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                guard let said = request.headers[.authorization] else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok(said)
            }
            try await withSession(configuration) { try await use(origin, $0, store) }
        }
    }

    private func load(_ session: Session, _ url: URL, _ user: String?) async throws -> String {
        let decisions = user.map { user in
            Decisions.challenged(ChallengeLog()) { _ in .use(Credential(user: user, password: "p")) }
        }
        return String(decoding: try await session.data(for: Request(url: url), decisions: decisions).0, as: UTF8.self)
    }

    private func basic(_ user: String) -> String { "Basic " + Data("\(user):p".utf8).base64EncodedString() }

    @Test("removing all credentials ends all logins", arguments: [true, false])
    func all(_ isAll: Bool) async throws {
        try await with { origin, session, store in
            let first = try await load(session, origin.url(), "ada")
            let again = try await load(session, origin.url(), nil)
            #expect(first == basic("ada") && again == first)
            if isAll {
                store.removeAll()
            } else {
                let (space, credentials) = try #require(store.all.first)
                store.remove(try #require(credentials.first), for: space)
            }
            let none = try await load(session, origin.url(), nil)
            #expect(none.isEmpty)
            let other = try await load(session, origin.url(), "ben")
            #expect(other == basic("ben"))
        }
    }

    @Test("removing a user keeps the logins of other users")
    func others() async throws {
        try await with { origin, session, store in
            _ = try await load(session, origin.url(), "ada")
            let space = try #require(store.all.keys.first)
            store.remove(Credential(user: "ben", password: "p"), for: space)
            let before = origin.counts.requests
            let again = try await load(session, origin.url(), nil)
            #expect(again == basic("ada") && origin.counts.requests == before + 1)
        }
    }

    enum Removed: Sendable, CaseIterable { case otherServer, otherRealm, otherUser, same, everyRealm, all }

    @Test(
        "a load does not restore a credential that is removed during its login, and stores any other",
        arguments: Removed.allCases)
    func meanwhile(_ removed: Removed) async throws {
        try await with { origin, session, store in
            let decisions = Decisions.challenged(ChallengeLog()) { challenge in
                let space = challenge.protectionSpace
                let realm: String? =
                    switch removed {
                    case .otherRealm: "y"
                    case .everyRealm: nil
                    default: space.realm
                    }
                let other = ProtectionSpace(
                    host: removed == .otherServer ? "other.test" : space.host, port: space.port, scheme: space.scheme,
                    realm: realm, method: space.method)
                let ada = Credential(user: removed == .otherUser ? "ben" : "ada", password: "p")
                if removed == .all { store.removeAll() } else { store.remove(ada, for: other) }
                return .use(Credential(user: "ada", password: "p"))
            }
            let first = try await session.data(for: Request(url: origin.url()), decisions: decisions).0
            #expect(String(decoding: first, as: UTF8.self) == basic("ada"))
            let isKept = [.otherServer, .otherRealm, .otherUser].contains(removed)
            #expect(store.all.isEmpty != isKept)
            let again = try await load(session, origin.url(), nil)
            #expect(again == (isKept ? basic("ada") : ""))
        }
    }

    @Test("after more removals than are tracked individually, all credentials count as removed")
    func many() throws {
        var removals = CredentialRemovals()
        func space(_ number: Int) -> ProtectionSpace {
            ProtectionSpace(host: "\(number).test", port: 80, scheme: "http", realm: "x", method: .basic)
        }
        let ada = Credential(user: "ada", password: "p")
        let login = try #require(Login(.basic(realm: "x"), space(-1), ada, path: "/"))
        for number in 0..<CredentialRemovals.most { removals.note(ada, for: space(number)) }
        #expect(!removals.contains(login, since: 0))
        let before = removals.count
        removals.note(ada, for: space(CredentialRemovals.most))
        #expect(removals.contains(login, since: before) && !removals.contains(login, since: removals.count))
    }

    @Test("a deallocated session is not notified")
    func gone() async throws {
        let store = CredentialStore()
        do {
            let session = Session(.ephemeral.with { $0.authentication.credentialStore = store })
            await expectEmpty(session)
        }
        store.removeAll()
    }
}
