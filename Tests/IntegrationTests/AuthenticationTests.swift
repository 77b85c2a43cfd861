// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Basic and Digest with nginx, Apache and squid.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct AuthenticationTests {
    private static func decisions(_ asked: AskedSpaces, _ password: String = "pw") -> Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            // Over TLS the decision is asked about the certificate, too.
            guard challenge.protectionSpace.method != .serverTrust else { return .performDefaultHandling }
            asked.add(challenge.protectionSpace)
            return challenge.previousFailureCount == 0
                ? .use(Credential(user: "u", password: password)) : .performDefaultHandling
        }
        return decisions
    }

    private final class AskedSpaces: Sendable {
        private let spaces = Lock<[ProtectionSpace]>([])
        func add(_ space: ProtectionSpace) { spaces.withLock { $0.append(space) } }
        var all: [ProtectionSpace] { spaces.withLock { $0 } }
    }

    @Test(
        "A decision answers the challenges of nginx and Apache",
        arguments: [
            ("NGINX", "/basic/", "zone"), ("APACHE", "/basic/", "a \"zone\""), ("APACHE", "/digest/", "dzone"),
            ("APACHE_TLS", "/digest/", "dzone"),
            ("NGINX_H2", "/basic/", "zone"), ("APACHE_H2", "/digest/", "dzone"),
        ])
    func origins(_ server: String, _ path: String, _ realm: String) async throws {
        let asked = AskedSpaces()
        let session = Session(Servers.configuration, decisions: Self.decisions(asked))
        for _ in 0..<4 {
            let (data, _) = try await session.data(from: try Servers.url(server, path + "1k.txt?a=b"))
            #expect(data == Servers.numbers(128))
        }
        #expect(asked.all.map(\.realm) == [realm])
        let wrong = Session(Servers.configuration, decisions: Self.decisions(AskedSpaces(), "no"))
        let (_, response) = try await wrong.data(from: try Servers.url(server, path + "1k.txt"))
        #expect(response.http?.status == .unauthorized)
    }

    @Test func `A stale nonce of Apache is replaced without a decision`() async throws {
        let asked = AskedSpaces()
        let session = Session(Servers.configuration, decisions: Self.decisions(asked))
        let target = try Servers.url("APACHE", "/digest/1k.txt")
        _ = try await session.data(from: target)
        // The server measures the lifetime of the nonce in whole seconds.
        try await Task.sleep(for: .milliseconds(2100))
        let (data, _) = try await session.data(from: target)
        #expect(data == Servers.numbers(128) && asked.all.count == 1)
    }

    @Test(arguments: ["NGINX", "NGINX_TLS"]) func `squid gets credentials after its challenge`(_ origin: String)
        async throws
    {
        let asked = AskedSpaces()
        var configuration = Servers.configuration
        configuration.networks.proxyPolicy = .fixed([try Proxy(Servers.text("SQUID_CLOSED", ""))])
        let session = Session(configuration, decisions: Self.decisions(asked))
        for _ in 0..<2 {
            let (data, _) = try await session.data(from: try ProxyTests.renamed(origin, "/1k.txt"))
            #expect(data == Servers.numbers(128))
        }
        #expect(asked.all.map(\.isProxy) == [true] && asked.all.first?.realm == "proxies")
    }
}
