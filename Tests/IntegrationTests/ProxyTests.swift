// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingWire

/// squid, microsocks and dante. Only squid resolves `origin.test`. microsocks tries only the first address of a name,
/// for `localhost` often ::1, where the relays of `script/test --far` do not listen; so it is asked for 127.0.0.1.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing))
struct ProxyTests {
    static func session(_ server: String, user: String? = nil, _ password: String? = nil) throws -> Session {
        let address = try Proxy(Servers.text(server, ""))
        var configuration = Servers.configuration
        configuration.networks.proxyPolicy = .fixed([
            try Proxy(address.kind, host: "\(address.host)", port: address.port, user: user, password: password)
        ])
        return Session(configuration)
    }

    /// The same server by a name that only the proxy resolves.
    static func renamed(_ server: String, _ path: String) throws -> URL {
        let url = try Servers.url(server, path)
        return try #require(URL(string: "\(url.scheme ?? "")://origin.test:\(url.port ?? 0)\(path)"))
    }

    @Test(
        "squid forwards http and tunnels https", arguments: ["SQUID", "SQUID_TLS", "SQUID_CLOSED"],
        ["NGINX", "NGINX_TLS"])
    func squid(proxy: String, origin: String) async throws {
        let session = try Self.session(proxy, user: "u", "pw")
        for name in ["/1k.txt", "/1m.bin"] {
            let count = name == "/1k.txt" ? 128 : 125_000
            let (data, response) = try await session.data(from: try Self.renamed(origin, name))
            #expect(data == Servers.numbers(count))
            // http is forwarded, https goes through a tunnel.
            #expect((response.http?.headers["Via"] != nil) == (origin == "NGINX"))
        }
        var upload = Request(url: try Self.renamed("NGINX", "/up/echo"), method: .post)
        upload.body = .data(Servers.numbers(20_000))
        let (_, response) = try await session.data(for: upload)
        #expect(response.http != nil)
    }

    @Test("squid requires credentials") func squidWantsCredentials() async throws {
        for password in ["wrong", nil] as [String?] {
            // Another user: squid caches one password for each, and would ask again for the right one.
            let session = try Self.session("SQUID_CLOSED", user: password == nil ? nil : "x", password)
            let (_, response) = try await session.data(from: try Self.renamed("NGINX", "/1k.txt"))
            #expect(response.http?.status == .proxyAuthenticationRequired)
            let error = await #expect(throws: LoadError.self) {
                try await session.data(from: try Self.renamed("NGINX_TLS", "/1k.txt"))
            }
            #expect(error?.reason == .proxyAuthenticationRequired)
            #expect(error?.proxyFailure?.head?.headers[.proxyAuthenticate] == "Basic realm=\"proxies\"")
        }
    }

    @Test("An error of squid is a proxy error") func squidCannotReachTheOrigin() async throws {
        let session = try Self.session("SQUID")
        // Port 1: no process listens there.
        let (_, response) = try await session.data(from: try #require(URL(string: "http://origin.test:1/")))
        #expect(response.http?.status == .serviceUnavailable)
        let error = await #expect(throws: LoadError.self) {
            try await session.data(from: try #require(URL(string: "https://origin.test:1/")))
        }
        #expect(error?.reason == .proxyRefused && error?.proxyFailure?.head?.status == .serviceUnavailable)
    }

    @Test(
        "microsocks connects with and without credentials", arguments: ["MICROSOCKS", "MICROSOCKS_OPEN"],
        ["NGINX", "NGINX_TLS13"])
    func socks(proxy: String, origin: String) async throws {
        try await Self.expectThrough(proxy, origin)
    }

    @Test(
        "dante connects",
        .enabled(if: Servers.variable("DANTE") != nil, "dante-server is not installed: some systems lack it"),
        arguments: ["NGINX", "NGINX_TLS"])
    func dante(origin: String) async throws {
        try await Self.expectThrough("DANTE", origin)
    }

    private static func expectThrough(_ proxy: String, _ origin: String) async throws {
        let session = try Self.session(proxy, user: "u", "pw")
        for _ in 0..<2 {
            let (data, _) = try await session.data(from: try Servers.url(origin, "/1m.bin"))
            #expect(data == Servers.numbers(125_000))
        }
        let error = await #expect(throws: LoadError.self) {
            try await session.data(from: try #require(URL(string: "http://127.0.0.1:1/")))
        }
        #expect(error?.reason == .proxyRefused && error?.proxyFailure?.reply == 5)
    }

    @Test("A SOCKS proxy requires credentials") func socksWantsCredentials() async throws {
        for password in ["wrong", nil] as [String?] {
            let session = try Self.session("MICROSOCKS", user: password == nil ? nil : "u", password)
            let error = await #expect(throws: LoadError.self) {
                try await session.data(from: try Servers.url("NGINX", "/1k.txt"))
            }
            #expect(error?.reason == .proxyAuthenticationRequired)
        }
    }

    @Test("A chain of three proxies connects") func aChainOfThree() async throws {
        var configuration = Servers.configuration
        let gate = try Proxy(Servers.text("MICROSOCKS", ""))
        configuration.networks.proxyPolicy = .fixed([
            try Proxy(Servers.text("MICROSOCKS_OPEN", "")),
            try Proxy(.socks5, host: "\(gate.host)", port: gate.port, user: "u", password: "pw"),
            try Proxy(Servers.text("SQUID_TLS", "")),
        ])
        let session = Session(configuration)
        for origin in ["NGINX", "NGINX_TLS"] {
            let (data, _) = try await session.data(from: try Self.renamed(origin, "/1m.bin"))
            #expect(data == Servers.numbers(125_000))
        }
    }
}
