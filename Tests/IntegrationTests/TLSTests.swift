// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct TLSTests {
    @Test(
        "A private authority is trusted when configured (checklist 119)",
        arguments: ["NGINX_TLS", "NGINX_TLS13", "APACHE_TLS"])
    func aPrivateIssuerIsTrustedWhenNamed(_ server: String) async throws {
        try await withSession(Servers.configuration) { session in
            for _ in 0..<2 {
                let (data, _) = try await session.data(from: Servers.url(server, "/1m.txt"))
                #expect(data == Servers.numbers(125_000))
            }
        }
    }

    @Test("Without the authority, or with another one, the connection is refused", arguments: [false, true])
    func othersAreNot(_ namesAnother: Bool) async throws {
        var configuration = Servers.configuration
        configuration.tls.trustRoots =
            namesAnother ? .file(URL(filePath: try #require(Servers.variable("OTHER_CA")))) : .system
        try await withSession(configuration) { session in
            let error = try await failure(session, Request(url: Servers.url("NGINX_TLS", "/1k.txt")))
            #expect(error.reason == .certificateUntrusted && error.phase == .securing && error.party == .remote)
        }
    }

    @Test("A certificate for another name is refused") func aCertificateForAnotherNameIsRefused() async throws {
        try await withSession(Servers.configuration) { session in
            let url = try Servers.url("NGINX_TLS", "/1k.txt")
            // A name of this machine that the certificate does not contain.
            let other = try #require(URL(string: "https://other.localhost:\(url.port ?? 0)/1k.txt"))
            let error = try await failure(session, Request(url: other))
            #expect(error.reason == .certificateNameMismatch)
        }
    }

    @Test("TLS versions without overlap are an error") func versionsMustMeet() async throws {
        var configuration = Servers.configuration
        configuration.tls.maximumVersion = .tls12
        try await withSession(configuration) { session in
            let error = try await failure(session, Request(url: Servers.url("NGINX_TLS13", "/1k.txt")))
            #expect(error.reason == .noCommonTLSVersion)
            let (data, _) = try await session.data(from: Servers.url("NGINX_TLS", "/1k.txt"))
            #expect(data.count == 1024)
        }
    }

    @Test("A server without TLS is an error") func plainTextIsNoTLS() async throws {
        try await withSession(Servers.configuration) { session in
            let url = try Servers.url("NGINX", "/1k.txt")
            let error = try await failure(
                session, Request(url: try #require(URL(string: "https://127.0.0.1:\(url.port ?? 0)/"))))
            #expect(error.reason == .notTLS)
        }
    }

    @Test("A server is reached over IPv6") func overIPv6() async throws {
        guard let url = try Servers.overIPv6("NGINX_TLS", "/1k.txt") else { return }
        try await withSession(Servers.configuration) { session in
            let (data, _) = try await session.data(from: url)
            #expect(data.count == 1024)
        }
    }
}
