// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

/// NTLM, verified by pyspnego, an independent implementation.
@Suite(
    .enabled(if: Servers.areHere, Servers.areMissing),
    .enabled(if: Servers.variable("NTLM") != nil, "pyspnego is not installed: script/setup --tests"),
    .timeLimit(.minutes(4)))
struct NTLMTests {
    private func session(_ user: String, _ password: String) -> Session {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            guard challenge.protectionSpace.method == .ntlm, challenge.previousFailureCount == 0 else {
                return .performDefaultHandling
            }
            return .use(Credential(user: user, password: password))
        }
        return Session(Servers.configuration, decisions: decisions)
    }

    /// Over TLS the server requires channel binding to its certificate (RFC 5929).
    @Test(arguments: ["NTLM", "NTLM_TLS"]) func `A connection is authenticated once, then open`(_ server: String)
        async throws
    {
        let session = session("DOM\\alice", "s3cret")
        let target = try Servers.url(server, "/x")
        let (data, _) = try await session.data(for: Request(url: target, method: .post, body: .data(Data("text".utf8))))
        #expect(String(decoding: data, as: UTF8.self) == "DOM\\alice 4\n")
        var connections: Set<String> = []
        for _ in 0..<3 {
            let (data, response) = try await session.data(from: target)
            #expect(String(decoding: data, as: UTF8.self) == "DOM\\alice 0\n")
            connections.insert(response.http?.headers["x-connection"] ?? "-")
        }
        #expect(connections.count == 1)
    }

    @Test func `Users and passwords may have characters beyond ASCII`() async throws {
        let (data, _) = try await session("DOM\\böb", "päss").data(from: try Servers.url("NTLM", "/"))
        #expect(String(decoding: data, as: UTF8.self) == "DOM\\böb 0\n")
    }

    @Test("Wrong credentials are refused", arguments: [("DOM\\alice", "no"), ("alice", "s3cret"), ("DOM\\nobody", "")])
    func refused(
        _ user: String, _ password: String
    ) async throws {
        let (_, response) = try await session(user, password).data(from: try Servers.url("NTLM", "/"))
        #expect(response.http?.status == .unauthorized)
    }

    @Test func `The command authenticates with --ntlm`() async throws {
        let target = try Servers.text("NTLM", "/x")
        for words in [["--ntlm"], [], ["--anyauth"]] {
            let result = try await Running.urlload(["-s", "-u", "DOM\\alice:s3cret"] + words + ["-d", "text", target])
            #expect(result.text == "DOM\\alice 4\n", "\(result.errors)")
        }
        let other = try await Running.urlload(["-s", "-f", "-u", "DOM\\alice:s3cret", "--digest", target])
        #expect(other.code == 22)
    }

    /// Over TLS the proxy requires channel binding to its certificate.
    @Test(arguments: ["NTLM_PROXY", "NTLM_PROXY_TLS"]) func `A proxy is authenticated (checklist 88)`(_ server: String)
        async throws
    {
        let address = try Proxy(Servers.text(server, ""))
        var configuration = Servers.configuration
        configuration.networks.proxyPolicy = .fixed([address])
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            guard challenge.protectionSpace.isProxy, challenge.previousFailureCount == 0 else {
                return .performDefaultHandling
            }
            return .use(Credential(user: "DOM\\alice", password: "s3cret"))
        }
        let session = Session(configuration, decisions: decisions)
        for _ in 0..<2 {
            let (secure, _) = try await session.data(from: try ProxyTests.renamed("NGINX_TLS", "/1k.txt"))
            #expect(secure == Servers.numbers(128))
        }
        var connections: Set<String> = []
        for _ in 0..<3 {
            let (plain, response) = try await session.data(from: try ProxyTests.renamed("NGINX", "/1k.txt"))
            #expect(plain == Servers.numbers(128) && response.http?.headers["x-proxy-user"] == "DOM\\alice")
            connections.insert(response.http?.headers["x-proxy-connection"] ?? "-")
        }
        #expect(connections.count == 1)
        let wrong = Session(configuration, decisions: Self.wrong)
        let error = await #expect(throws: LoadError.self) {
            try await wrong.data(from: try ProxyTests.renamed("NGINX_TLS", "/1k.txt"))
        }
        #expect(error?.reason == .proxyAuthenticationRequired)
    }

    private static var wrong: Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            guard challenge.protectionSpace.isProxy, challenge.previousFailureCount == 0 else {
                return .performDefaultHandling
            }
            return .use(Credential(user: "DOM\\alice", password: "no"))
        }
        return decisions
    }

    @Test func `The command authenticates to a proxy`() async throws {
        for origin in ["NGINX", "NGINX_TLS"] {
            let target = try ProxyTests.renamed(origin, "/1k.txt").absoluteString
            let words = [
                "-s", "--cacert", try Servers.text("CA", ""), "-x", try Servers.text("NTLM_PROXY", ""), "-U",
                "DOM\\alice:s3cret",
            ]
            let result = try await Running.urlload(words + [target])
            #expect(result.output == Array(Servers.numbers(128)), "\(result.errors)")
        }
    }
}
