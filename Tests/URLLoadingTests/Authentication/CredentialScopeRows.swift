// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTesting

@testable import URLLoading

/// The scope of a credential: one load, all loads of a session, all sessions of a store; and which decision is called.
@Suite(.timeLimit(.minutes(4))) struct CredentialScopeRows {
    private func status(_ session: Session, _ url: URL, _ decisions: Decisions? = nil) async throws -> Status? {
        let (_, response) = try await session.data(for: Request(url: url), decisions: decisions)
        return response.http?.status
    }

    @Test func `a credential belongs to one load, or to a session (checklist 19, 86)`() async throws {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            for persistence in [Credential.Persistence.none, .session] {
                let session = Session(.ephemeral)
                let decisions = Decisions.challenged(ChallengeLog()) { _ in
                    .use(Credential(user: "ada", password: "s3cret", persistence: persistence))
                }
                let first = try await status(session, origin.url(), decisions)
                let second = try await status(session, origin.url())
                #expect(first == .ok && second == (persistence == .none ? .unauthorized : .ok))
                // Another session has its own credential, whichever the first has stored.
                let other = try await status(Session(.ephemeral), origin.url())
                #expect(other == .unauthorized)
                await expectEmpty(session)
            }
        }
    }

    @Test
    func `a permanent credential serves all sessions that share the store's file, and later ones (checklist 86, 87)`()
        async throws
    {
        let file = FileManager.default.temporaryDirectory.appending(
            path: "credentials-\(UInt64.random(in: 0 ... .max))/c.json")
        defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
        let gate = Gate([.digest("SHA-256", qop: "auth")])
        try await withGate(gate) { origin in
            for persistence in [Credential.Persistence.session, .permanent] {
                var statuses: [Status?] = []
                for round in 0..<2 {
                    var configuration = Configuration.ephemeral
                    configuration.authentication.credentialStore = CredentialStore(file: file)
                    let decisions = Decisions.challenged(ChallengeLog()) { _ in
                        .use(Credential(user: "ada", password: "s3cret", persistence: persistence))
                    }
                    statuses.append(
                        try await status(Session(configuration), origin.url(), round == 0 ? decisions : nil))
                }
                #expect(statuses == [.ok, persistence == .permanent ? .ok : .unauthorized])
            }
        }
    }

    /// A session has one challenge decision. A load's own decision replaces it for Basic and Digest; without one, the
    /// session's applies.
    @Test func `Basic and Digest challenges go to the load's own decision (checklist 68)`() async throws {
        for kind in [Gate.Kind.basic, .digest("MD5", qop: "auth")] {
            let gate = Gate([kind])
            try await withGate(gate) { origin in
                let (own, shared) = (ChallengeLog(), ChallengeLog())
                let session = Session(
                    .ephemeral,
                    decisions: .challenged(shared) { _ in
                        .use(Credential(user: "ada", password: "s3cret", persistence: .none))
                    })
                let refused = try await status(session, origin.url(), .challenged(own) { _ in .rejectProtectionSpace })
                #expect(refused == .unauthorized && own.withLock { $0.count } == 1 && shared.withLock { $0.isEmpty })
                let open = try await status(session, origin.url())
                #expect(open == .ok && shared.withLock { $0.count } == 1)
                await expectEmpty(session)
            }
        }
    }

    @Test func `logins end with their session; credentials in a store of the caller remain (checklist 4)`()
        async throws
    {
        let gate = Gate([.basic])
        try await withGate(gate) { origin in
            let space = ProtectionSpace(
                host: "127.0.0.1", port: Int(origin.port), scheme: "http", realm: "zone", method: .basic)
            for store in [nil, CredentialStore()] {
                var configuration = Configuration.ephemeral
                configuration.authentication.credentialStore = store
                let session = Session(
                    configuration,
                    decisions: .challenged(ChallengeLog()) { _ in .use(Credential(user: "ada", password: "s3cret")) })
                for user in ["", "ada:s3cret@"] {
                    try await session.expect(try url("http://\(user)127.0.0.1:\(origin.port)/"), "in")
                }
                let known = session.core.authenticator
                #expect(known.rememberedServers == 1 && known.credential(for: space) != nil)
                await expectEmpty(session)
                #expect(known.rememberedServers == 0 && (known.credential(for: space) != nil) == (store != nil))
            }
        }
    }
}
