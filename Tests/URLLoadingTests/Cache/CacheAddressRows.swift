// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The origin of a stored response: no session is served a response that it could not have loaded itself.
@Suite(.timeLimit(.minutes(4)))
struct CacheAddressRows {
    private func with(_ cache: ResponseCache, _ policy: AddressPolicy = .any) -> Configuration {
        var configuration = Configuration.ephemeral
        (configuration.caching.store, configuration.networks.addressPolicy) = (cache, policy)
        return configuration
    }

    private func withPage(_ use: (HTTPTestServer, ResponseCache, URL) async throws -> Void) async throws {
        let folder = temporaryURL("address-rows")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .ok("intern", headers: [.cacheControl: "max-age=60"]) }
            try await use(origin, ResponseCache(directory: folder), folder)
        }
    }

    /// Returns the response that a session finds without a network; `nil` for none.
    private func found(_ url: URL, _ configuration: Configuration) async throws -> String? {
        try await withSession(configuration) { session in
            var request = Request(url: url)
            request.cachePolicy = .onlyIfCached
            return try? await session.text(request)
        }
    }

    @Test("a session with an address policy is not served responses from an address that it refuses")
    func policies() async throws {
        try await withPage { origin, cache, folder in
            try await withSession(with(cache)) { try await $0.expect(origin.url(), "intern") }
            cache.flush()
            for cache in [cache, ResponseCache(memoryCapacity: 0, directory: folder)] {
                try await withSession(with(cache, .publicOnly)) { session in
                    await expectFailure(.addressRefused) { try await session.text(origin.url()) }
                }
                let offline = try await found(origin.url(), with(cache, .publicOnly))
                #expect(offline == nil)
                // Responses from allowed addresses are served.
                let port = origin.port
                let own = AddressPolicy { $0.isLoopback && $0.port == port && $0.host == "127.0.0.1" }
                let allowed = try await found(origin.url(), with(cache, own))
                #expect(allowed == "intern")
            }
            #expect(origin.counts.requests == 1)
        }
    }

    @Test("a response stored by the program has no address, and is not served to a session with a policy")
    func stored() async throws {
        try await withPage { origin, cache, _ in
            let response = Response(
                url: origin.url(), http: HTTPHead(status: .ok, headers: [.cacheControl: "max-age=60"]))
            let isStored = cache.store(
                CachedResponse(response: response, data: Data("own".utf8)), for: Request(url: origin.url()))
            #expect(isStored)
            let open = try await found(origin.url(), with(cache))
            let judged = try await found(origin.url(), with(cache, AddressPolicy { _ in true }))
            #expect(open == "own" && judged == nil)
        }
    }

    @Test("a response found through a session's own resolver is served to that session only, from memory only")
    func resolvers() async throws {
        try await withPage { origin, cache, folder in
            var own = with(cache)
            own.networks.nameResolver = NameResolver { _ in ["127.0.0.1"] }
            let page = try url("http://name.test:\(origin.port)/")
            let address = origin.url()
            try await withSession(own) { session in
                for _ in 0..<2 { try await session.expect(page, "intern") }
                try await session.expect(address, "intern")
            }
            #expect(origin.counts.requests == 2)
            cache.flush()
            let memory = try await found(page, with(cache))
            let disk = try await found(page, with(ResponseCache(directory: folder)))
            #expect(memory == nil && disk == nil)
            // No resolver was asked for this one.
            let plain = try await found(address, with(cache))
            #expect(plain == "intern")
        }
    }

    @Test(
        "a response through a configuration's own proxies is served to that session only, from memory only",
        arguments: [true, false])
    func proxies(_ isDecided: Bool) async throws {
        try await withPage { origin, cache, folder in
            try await withTestProxy { proxy in
                let proxyChain: ProxyChain = [try proxy.address()]
                var own = with(cache)
                own.networks.proxyPolicy = isDecided ? .custom { _ in [proxyChain] } : .fixed(proxyChain)
                let page = origin.url()
                try await withSession(own) { session in
                    for _ in 0..<2 { try await session.expect(page, "intern") }
                }
                #expect(origin.counts.requests == 1 && proxy.requests.count == 1)
                cache.flush()
                let memory = try await found(page, with(cache))
                let disk = try await found(page, with(ResponseCache(directory: folder)))
                #expect(memory == nil && disk == nil)
            }
        }
    }

    @Test("a response through the environment's proxies is served to every session without an address policy")
    func environment() async throws {
        try await withPage { origin, cache, _ in
            try await withTestProxy { proxy in
                let address = "http://127.0.0.1:\(proxy.port)"
                var own = with(cache)
                own.networks.proxyPolicy = ProxyPolicy(
                    choice: .given(ProxyEnvironment { $0 == "http_proxy" ? address : nil }))
                let page = try url("http://origin.test:\(origin.port)/")
                try await withSession(own) { try await $0.expect(page, "intern") }
                let open = try await found(page, with(cache))
                let judged = try await found(page, with(cache, AddressPolicy { _ in true }))
                #expect(open == "intern" && judged == nil && proxy.requests.count == 1)
            }
        }
    }
}
