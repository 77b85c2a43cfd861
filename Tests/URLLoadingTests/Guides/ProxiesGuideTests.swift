// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/proxies.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ProxiesGuideTests {
    @Test("the proxy policies")
    func policies() async throws {
        var configuration = Configuration.ephemeral
        configuration.networks.proxyPolicy = .none
        configuration.networks.proxyPolicy = .fixed(
            [try Proxy("http://user:password@proxy.example:3128")], except: ["intern.example", "10.0.0.0/8"])
        configuration.networks.proxyPolicy = .automatic
        configuration.networks.proxyPolicy = .automatic(fallback: [.direct])
        _ = try Proxy(.socks5, host: "gate.example", resolvesHostNames: false)
        _ = try Proxy(.socks5, unixSocket: "/run/tor/socks")
        let gate = try Proxy("socks5h://localhost/run/tor/socks")
        #expect(gate.socketPath == "/run/tor/socks")
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here") }
            try await withTestProxy(.init(.socks)) { first in
                try await withTestProxy { second in
                    let outer = try first.address()
                    let inner = try second.address()
                    configuration.networks.proxyPolicy = .fixed([outer, inner])
                    try await Session(configuration).expect(origin.url(), "here")
                    #expect(first.requests.count == 1 && second.requests.count == 1)
                    let fast = outer
                    let spare = inner
                    configuration.networks.proxyPolicy = .custom { url in
                        url.host()?.hasSuffix(".example") == true ? [[fast], [spare]] : [.direct]
                    }
                    let session = Session(configuration)
                    try await session.expect(origin.url(), "here")
                    try await session.expect(try url("http://a.example:\(origin.port)/"), "here")
                    #expect(first.requests.count == 2)
                }
            }
        }
    }

    @Test("which hop failed")
    func failures() async throws {
        try await withTestProxy(.init(.http, user: "u")) { proxy in
            var configuration = Configuration.ephemeral
            configuration.networks.proxyPolicy = .fixed([try proxy.address()])
            let session = Session(configuration)
            let url = try url("https://origin.test/")
            var said = ""
            do {
                let (data, _) = try await session.data(from: url)
                Issue.record("\(data)")
            } catch let error as LoadError {
                if let failure = error.proxyFailure {
                    said = "at \(failure.proxy): \(failure.head?.status.description ?? "no answer")"
                }
            }
            #expect(said == "at http://127.0.0.1:\(proxy.port): 407 Proxy Authentication Required")
        }
    }

    @Test("other addresses")
    func places() throws {
        struct OwnNames: Sendable { func addresses(of name: String) async throws -> [String] { [] } }
        let ownNames = OwnNames()
        var configuration = Configuration.ephemeral
        configuration.networks.addressOverrides = [
            try .unixSocket("/run/docker.sock", for: "docker"),
            try .addresses(["192.0.2.7"], of: "api.example"),
            try .connect("www.example", port: 443, to: "staging.example", onPort: 8443),
        ]
        configuration.networks.interface = .named("wg0")
        configuration.networks.nameResolver = NameResolver { name in try await ownNames.addresses(of: name) }
    }

    @Test("a proxy of the test's")
    func testing() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here") }
            var configuration = Configuration.ephemeral
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                configuration.networks.proxyPolicy = .fixed([try proxy.address(user: "u", password: "pw")])
                let (data, _) = try await Session(configuration).data(
                    from: URL(string: "http://origin.test:\(origin.port)/")!)
                #expect(proxy.requests.first?.target == "http://origin.test:\(origin.port)/")
                #expect(data.count == 4)
            }
        }
    }
}
