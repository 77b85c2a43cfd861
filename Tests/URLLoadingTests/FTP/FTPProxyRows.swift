// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// ftp through proxies: both connections take the same route.
@Suite(.timeLimit(.minutes(4)))
struct FTPProxyRows {
    @Test("control and data use HTTP's CONNECT or SOCKS; connections of other routes are not reused")
    func ways() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("hello".utf8))
            for kind in [TestProxy.Configuration.Kind.http, .socks] {
                try await withTestProxy(.init(kind)) { proxy in
                    let session = try Session(
                        .ephemeral.with { $0.networks.proxyPolicy = .fixed([try proxy.address()]) })
                    try await session.expect(server.url("/a"), "hello")
                    try await session.expect(server.url("/a"), "hello")
                    #expect(proxy.connections == 3)
                    await expectEmpty(session)
                }
            }
            #expect(server.counts.accepted == 2)
        }
    }

    @Test("ftp_proxy takes precedence over all_proxy, and applies to no other scheme")
    func environment() throws {
        let environment = ProxyEnvironment {
            ["ftp_proxy": "http://f.example:1", "all_proxy": "http://a.example:2"][$0]
        }
        let host = try Origin.Host("b.example")
        #expect(try environment.chain(to: host, port: 21, scheme: "ftp").description == "http://f.example:1")
        #expect(try environment.chain(to: host, port: 990, scheme: "ftps").description == "http://f.example:1")
        #expect(try environment.chain(to: host, port: 80, scheme: "http").description == "http://a.example:2")
        let alone = ProxyEnvironment { ["all_proxy": "http://a.example:2"][$0] }
        #expect(try alone.chain(to: host, port: 21, scheme: "ftp").description == "http://a.example:2")
    }

    @Test("a change to the proxies of the environment, such as a login for them, reaches ftp_proxy")
    func changedEnvironment() throws {
        let host = try Origin.Host("b.example")
        func ftp(_ variables: [String: String]) throws -> String {
            let environment = ProxyEnvironment { variables[$0] }.mapped { (chain) throws(LoadError) in
                ProxyChain([try Proxy(.http, host: "first.example")] + (chain?.proxies ?? []))
            }
            return try environment.chain(to: host, port: 21, scheme: "ftp").proxies.map { "\($0.host)" }.joined(
                separator: " ")
        }
        #expect(try ftp(["ftp_proxy": "f.example:1", "all_proxy": "a.example:2"]) == "first.example f.example")
        #expect(try ftp(["all_proxy": "a.example:2"]) == "first.example a.example")
        #expect(try ftp(["https_proxy": "s.example:3"]) == "first.example")
        #expect(throws: LoadError.self) { try ftp(["ftp_proxy": "gopher://f.example"]) }
    }
}
