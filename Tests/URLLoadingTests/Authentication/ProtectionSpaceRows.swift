// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A protection space is a server's root and a realm (RFC 9110 §11.5): acceptance or refusal in one space does not
/// affect another. Checklist 71, 73; security 65.
@Suite(.timeLimit(.minutes(4))) struct ProtectionSpaceRows {
    private static let ada = Credential(user: "ada", password: "s3cret")
    private static let digest = Gate.Kind.digest("SHA-256", qop: "auth")

    /// An origin with a separate realm below each path.
    private func with(_ gates: [(String, Gate)], _ use: (HTTPTestServer) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            for (path, gate) in gates { origin.route(path) { gate.answer($0) } }
            try await use(origin)
        }
        for (_, gate) in gates { #expect(gate.faults == []) }
    }

    /// Sessions with a user from a store, from the URL, and from a decision.
    private func each(_ origin: HTTPTestServer, _ use: (Session, String, _ isAsked: Bool) async throws -> Void)
        async throws
    {
        for source in ["store", "url", "decision"] {
            var configuration = Configuration.ephemeral
            let store = CredentialStore()
            if source == "store" { store.set(Self.ada, for: try ProtectionSpace(server: origin.url())) }
            configuration.authentication.credentialStore = store
            let decisions = source == "decision" ? Decisions.challenged(ChallengeLog()) { _ in .use(Self.ada) } : nil
            let session = Session(configuration, decisions: decisions)
            try await use(
                session, "http://\(source == "url" ? "ada:s3cret@" : "")127.0.0.1:\(origin.port)", decisions != nil)
            await expectEmpty(session)
        }
    }

    @Test("below a path with Basic, a Digest challenge is answered with the same user")
    func digestBelowBasic() async throws {
        let basic = Gate([.basic])
        let digest = Gate([Self.digest], realm: "inner")
        try await with([("/x/*", basic), ("/x/y/*", digest)]) { origin in
            try await each(origin) { session, base, _ in
                try await session.expect(try url(base + "/x/a"), "in")
                try await session.expect(try url(base + "/x/y/b"), "in")
                // Both spaces are remembered, and each is used preemptively on its own paths.
                let count = basic.seen.count + digest.seen.count
                try await session.expect(try url(base + "/x/a"), "in")
                try await session.expect(try url(base + "/x/y/c"), "in")
                #expect(basic.seen.count + digest.seen.count == count + 2)
            }
        }
    }

    @Test("another realm with Digest is answered with the same user")
    func otherRealm() async throws {
        let one = Gate([Self.digest], realm: "one")
        let two = Gate([Self.digest], realm: "two")
        try await with([("/one/*", one), ("/two/*", two)]) { origin in
            try await each(origin) { session, base, _ in
                try await session.expect(try url(base + "/one/a"), "in")
                try await session.expect(try url(base + "/two/b"), "in")
                try await session.expect(try url(base + "/one/c"), "in")
            }
        }
    }

    @Test("Digest in one realm does not forbid Basic in another, but does in its own")
    func perRealm() async throws {
        let strong = Gate([Self.digest], realm: "a")
        let weak = Gate([.basic], realm: "b")
        let same = Gate([.basic], realm: "a")
        try await with([("/a/*", strong), ("/b/*", weak), ("/c/*", same)]) { origin in
            try await each(origin) { session, base, isAsked in
                try await session.expect(try url(base + "/a/1"), "in")
                try await session.expect(try url(base + "/b/1"), "in")
                guard !isAsked else { return }
                try await session.expect(try url(base + "/c/1"), "refused")
            }
            #expect(same.seen.allSatisfy { !$0.hasPrefix("Basic") })
        }
    }

    @Test("a password that Digest refused is not sent as Basic to the same realm")
    func noDowngradeWithinOneRequest() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                let said = request.headers[.authorization] ?? ""
                guard !said.hasPrefix("Basic") else { return .ok("in the clear") }
                let challenge =
                    said.isEmpty ? "Digest realm=\"zone\", nonce=\"n\", qop=\"auth\"" : "Basic realm=\"zone\""
                return .status(
                    .unauthorized, headers: [.wwwAuthenticate: challenge], body: .bytes(Array("refused".utf8)))
            }
            let session = Session(.ephemeral)
            try await session.expect(try url("http://ada:s3cret@127.0.0.1:\(origin.port)/"), "refused")
            await expectEmpty(session)
        }
    }

    @Test(
        "a decision counts the failures of its own protection space, which is of one realm and one scheme",
        arguments: ["inner", "zone"])
    func failures(_ realm: String) async throws {
        let basic = Gate([.basic])
        let digest = Gate([Self.digest], realm: realm)
        try await with([("/x/*", basic), ("/x/y/*", digest)]) { origin in
            let log = ChallengeLog()
            let session = Session(
                .ephemeral,
                decisions: .challenged(log) { challenge in
                    challenge.previousFailureCount == 0 ? .use(Self.ada) : .cancel
                })
            try await session.expect(origin.url("/x/a"), "in")
            try await session.expect(origin.url("/x/y/b"), "in")
            try await session.expect(origin.url("/x/y/c"), "in")
            #expect(log.withLock { $0.map(\.previousFailureCount) } == [0, 0])
            await expectEmpty(session)
        }
    }

    @Test("the protection spaces of a proxy are kept apart as well")
    func proxies() async throws {
        try await withHTTPTestServer { proxy in
            let gate = Gate([Self.digest], realm: "second", user: "u", password: "pw", field: .proxyAuthorization)
            proxy.route("*") { request in
                var answer = gate.answer(request)
                guard answer.status == .unauthorized else { return answer }
                answer.status = .proxyAuthenticationRequired
                answer.headers = [.proxyAuthenticate: answer.headers[.wwwAuthenticate] ?? ""]
                return answer
            }
            let address = try Proxy("http://u:pw@127.0.0.1:\(proxy.port)")
            let log = ChallengeLog()
            let session = Session(
                ProxyRows.client(.fixed([address])).0, decisions: .challenged(log) { _ in .performDefaultHandling })
            // Basic is sent preemptively and refused; the same password then answers Digest.
            try await session.expect(try url("http://origin.test/a"), "in")
            #expect(gate.seen.first?.hasPrefix("Basic") == true && gate.seen.last?.hasPrefix("Digest") == true)
            await expectEmpty(session)
        }
    }
}
