// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/authentication.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct AuthenticationGuideTests {
    private struct Vault: Sendable {
        func password(of host: String) async throws -> String { "secret" }
    }
    private struct Account: Sendable {
        func newToken() async throws -> String { "t1" }
    }

    @Test("a decision")
    func decision() async throws {
        let gate = Gate([.digest("SHA-256", qop: "auth")], password: "secret")
        let vault = Vault()
        let configuration = Configuration.ephemeral
        try await withHTTPTestServer { origin in
            origin.route("/*") { gate.answer($0) }
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                let space = challenge.protectionSpace
                guard [.digest, .basic].contains(space.method), !space.isProxy, challenge.previousFailureCount == 0
                else {
                    return .performDefaultHandling
                }
                return .use(Credential(user: "ada", password: try await vault.password(of: space.host)))
            }
            let session = Session(configuration, decisions: decisions)
            try await session.expect(origin.url(), "in")
        }
    }

    @Test("a store")
    func store() async throws {
        let gate = Gate([.digest("MD5", qop: "auth")], password: "secret")
        try await withHTTPTestServer { origin in
            origin.route("/*") { gate.answer($0) }
            let url = origin.url()
            var configuration = Configuration.ephemeral
            let store = CredentialStore()
            store.set(Credential(user: "ada", password: "secret"), for: try ProtectionSpace(server: url))
            configuration.authentication.credentialStore = store
            configuration.authentication.netrc = .standard
            configuration.authentication.methods = [.digest]
            try await Session(configuration).expect(url, "in")
        }
    }

    @Test("tokens")
    func tokens() async throws {
        let gate = Gate([.bearer])
        let account = Account()
        let saved = "old"
        try await withHTTPTestServer { origin in
            origin.route("/*") { gate.answer($0) }
            var configuration = Configuration.ephemeral
            configuration.authentication.bearer = try BearerTokens(for: [origin.url().absoluteString], token: saved) {
                refusal in
                try await account.newToken()
            }
            try await Session(configuration).expect(origin.url(), "in")
        }
    }

    @Test("NTLM")
    func ntlm() async throws {
        let gate = NTLMGate(["ada": "secret"], others: ["Basic realm=\"zone\""])
        let vault = Vault()
        try await withHTTPTestServer { origin in
            origin.route("/*") { gate.answer($0) }
            var configuration = Configuration.ephemeral
            var decisions = Decisions()
            configuration.authentication.methods = [.negotiate, .ntlm]
            decisions.challenge = Decision { challenge in
                guard challenge.protectionSpace.method == .ntlm, challenge.previousFailureCount == 0 else {
                    return .performDefaultHandling
                }
                return .use(
                    Credential(
                        user: "EXAMPLE\\ada", password: try await vault.password(of: challenge.protectionSpace.host)))
            }
            try await Session(configuration, decisions: decisions).expect(origin.url(), "ada 0")
        }
    }

    @Test("proxies")
    func proxies() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "ada", password: "secret")) { proxy in
                var configuration = Configuration.ephemeral
                configuration.networks.proxyPolicy = .fixed([try proxy.address(user: "ada", password: "secret")])
                configuration.authentication.methods = [.digest]
                configuration.authentication.proxyMethods = [.digest, .basic]
                try await Session(configuration).expect(try url("http://origin.test:\(origin.port)/"), "here")
                #expect(proxy.requests.count == 1)
            }
        }
    }
}
