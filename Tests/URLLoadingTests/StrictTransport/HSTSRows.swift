// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// RFC 6797 §8 through sessions.
@Suite(.timeLimit(.minutes(4)))
struct HSTSRows {
    private static let field: Headers = ["Strict-Transport-Security": "max-age=1000; includeSubDomains"]

    @Test("http becomes https before the first byte, with an event and honest metrics; the port stays (RFC 6797 8.3)")
    func upgrade() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/*") { .ok($0.tls == nil ? "plain" : "secure", headers: Self.field) }
            let plain = try url("http://localhost:\(origin.port)/x?y")
            try await withSession(configuration) { session in
                #expect(session.hsts?.requiresTLS(plain) == false)
                try await session.expect(origin.url(), "secure")
                #expect(session.hsts?.all.map(\.name) == ["localhost"])
                let task = session.dataTask(from: plain)
                let events = task.events
                task.resume()
                var canonical: [URL] = []
                var metrics: LoadMetrics?
                for await event in events {
                    if case .canonicalized(let request) = event { canonical.append(request.url) }
                    if case .metrics(let value) = event { metrics = value }
                }
                let (data, response) = (try await task.value, try await task.response)
                let secure = try url("https://localhost:\(origin.port)/x?y")
                #expect(data == Data("secure".utf8) && response.url == secure && canonical == [secure])
                #expect(metrics?.transactions.count == 1 && metrics?.transactions.first?.request.url == secure)
            }
        }
    }

    @Test("a redirect to http is upgraded too (RFC 6797 8.3)")
    func redirects() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/there") { _ in .ok("secure") }
            origin.route("/") { _ in
                .status(
                    .found,
                    headers: [
                        "Location": "http://localhost:\(origin.port)/there", "Strict-Transport-Security": "max-age=9",
                    ])
            }
            try await withSession(configuration) { try await $0.expect(origin.url(), "secure") }
        }
    }

    @Test("nothing is noted from http, from addresses, without verification, or without a store")
    func notNoted() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("plain", headers: Self.field) }
            var configuration = Configuration.ephemeral
            configuration.networks.resolver = RecordingResolver()
            let there = try url("http://a.org:\(origin.port)/")
            try await withSession(configuration) { session in
                try await session.expect(there, "plain")
                try await session.expect(there, "plain")
                #expect(session.hsts?.all.isEmpty == true)
            }
        }
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { _ in .ok("secure", headers: Self.field) }
            var careless = configuration
            careless.tls.unsafelySkipsVerification = true
            try await withSession(careless) { session in
                try await session.expect(origin.url(), "secure")
                #expect(session.hsts?.all.isEmpty == true)
            }
            var without = configuration
            without.hsts.storage = .none
            try await withSession(without) { session in
                try await session.expect(origin.url(), "secure")
                #expect(session.hsts == nil)
            }
        }
    }

    @Test("a policy counts by the checks of the connection that it came over, also after reloadTLS")
    func reloaded() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { _ in .ok("secure", headers: Self.field) }
            var unchecked = configuration.tls
            unchecked.unsafelySkipsVerification = true
            try await withSession(configuration) { session in
                session.reloadTLS(unchecked)
                try await session.expect(origin.url(), "secure")
                #expect(session.hsts?.all.isEmpty == true)
                session.reloadTLS(configuration.tls)
                try await session.expect(origin.url(), "secure")
                #expect(session.hsts?.all.map(\.name) == ["localhost"])
            }
        }
    }

    @Test("nothing is noted over a connection that a decision alone trusts, also when it is used again (RFC 6797 8.1)")
    func forced() async throws {
        try await withTrust { rig in
            rig.origin.route("/") { _ in .ok("full", headers: Self.field) }
            try await withSession(rig.strict, decisions: rig.accepting) { session in
                for _ in 0..<2 { try await session.expect(rig.origin.url(), "full") }
                #expect(session.hsts?.all.isEmpty == true)
            }
            try await withSession(rig.trusting, decisions: rig.accepting) { session in
                try await session.expect(rig.origin.url(), "full")
                #expect(session.hsts?.all.count == 1)
            }
        }
    }

    @Test("a decision cannot accept a known HSTS host with an invalid certificate (RFC 6797 §8.4, §12.1)")
    func noRecourse() async throws {
        try await withTrust { rig in
            let store = HSTSStore()
            store.set(try #require(HSTSHost("localhost", expires: .now + 1000)))
            var configuration = rig.strict
            configuration.hsts.storage = .store(store)
            try await withSession(configuration, decisions: rig.accepting) { session in
                let error = await failure(.strictTransportSecurity, .local, .securing) {
                    try await session.data(from: rig.origin.url())
                }
                #expect(error?.serverTrust?.failures.first?.reason == .certificateUntrusted)
            }
            #expect(rig.origin.counts.requests == 0)
            configuration.hsts.unsafelyAllowsUntrustedCertificates = true
            try await withSession(configuration, decisions: rig.accepting) {
                try await $0.expect(rig.origin.url(), "full")
            }
        }
    }
}
