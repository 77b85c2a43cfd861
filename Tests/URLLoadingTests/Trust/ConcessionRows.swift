// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Servers whose TLS is old, through the whole library.
@Suite(.timeLimit(.minutes(4)))
struct ConcessionRows {
    typealias Concessions = Configuration.TLS.UnsafeConcessions
    typealias Version = Configuration.TLS.Version

    private static func concede(
        _ hosts: String = "localhost", in configuration: inout Configuration, _ change: (inout Concessions) -> Void
    ) throws {
        var value = try Concessions(hosts)
        change(&value)
        configuration.tls.unsafeConcessions.append(value)
    }

    private static func transaction(
        _ session: Session, _ url: URL
    ) async throws -> (String, LoadMetrics.Transaction) {
        let task = session.dataTask(from: url).resumed()
        let data = try await task.value
        let last = try #require(try await task.metrics.transactions.last)
        return (String(decoding: data, as: UTF8.self), last)
    }

    @Test("a server of TLS 1.0 or 1.1 is refused, and the error names the setting", arguments: [Version.tls10, .tls11])
    func refused(_ version: Version) async throws {
        try await withSecureOrigin(server: { ($0.minimumVersion, $0.maximumVersion) = (.tls10, version) }) {
            origin, configuration in
            try await withSession(configuration) { session in
                let error = await failure(.noCommonTLSVersion, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.description.contains("tls.unsafeConcessions with minimumVersion .tls10") == true)
            }
        }
    }

    @Test("a server that resets the connection at the hello may have no TLS 1.2, and the error says so")
    func resetAtHello() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.inject(.init(.handshake, .reset), onConnection: 1)
            try await withSession(configuration) { session in
                let error = await failure(.connectionLost, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.tlsRemedies == [.minimumVersion, .minimumStrength])
                #expect(error?.description.contains("tls.unsafeConcessions with minimumVersion .tls10") == true)
            }
        }
    }

    @Test("a conceded version is used, and the metrics say so", arguments: [Version.tls10, .tls11])
    func conceded(_ version: Version) async throws {
        try await withSecureOrigin(server: { ($0.minimumVersion, $0.maximumVersion) = (.tls10, version) }) {
            origin, configuration in
            origin.route("/") { .ok($0.tls?.version ?? "-") }
            var configuration = configuration
            try Self.concede(in: &configuration) { $0.minimumVersion = .tls10 }
            try await withSession(configuration) { session in
                let (text, transaction) = try await Self.transaction(session, origin.url())
                #expect(text == (version == .tls10 ? "TLSv1.0" : "TLSv1.1"))
                #expect(transaction.tlsVersion == version)
                #expect(transaction.tlsConcessions == [.version])
                #expect(transaction.description.hasSuffix(", conceded version"))
            }
        }
    }

    @Test("a concession to one host is none to another")
    func otherHost() async throws {
        try await withSecureOrigin(
            .init(names: ["camera.example"]), name: "camera.example",
            server: { ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls10) }
        ) { origin, configuration in
            for (hosts, isConceded) in [("camera.example", true), ("*.example", true), ("other.example", false)] {
                var configuration = configuration
                try Self.concede(hosts, in: &configuration) { $0.minimumVersion = .tls10 }
                try await withSession(configuration) { session in
                    if isConceded {
                        _ = try await session.data(from: origin.url())
                    } else {
                        await expectFailure(.noCommonTLSVersion) { try await session.data(from: origin.url()) }
                    }
                }
            }
        }
    }

    @Test("the first concession that matches applies alone")
    func first() async throws {
        try await withSecureOrigin(server: { ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls10) }) {
            origin, configuration in
            var configuration = configuration
            try Self.concede(in: &configuration) { $0.minimumStrength = .any }
            try Self.concede("*", in: &configuration) { $0.minimumVersion = .tls10 }
            try await withSession(configuration) { session in
                await expectFailure(.noCommonTLSVersion) { try await session.data(from: origin.url()) }
            }
        }
    }

    @Test("a version below 1.2 cannot be set for all hosts, and the error says how it is conceded")
    func everyHost() async throws {
        try await withSecureOrigin { origin, configuration in
            var configuration = configuration
            configuration.tls.minimumVersion = .tls10
            try await withSession(configuration) { session in
                let error = await failure(.noCommonTLSVersion, .local, .securing) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.detail?.contains("accepted only from hosts to which it is conceded") == true)
            }
        }
    }

    @Test("a weak certificate is conceded by its strength")
    func strength() async throws {
        var options = TestCertificateOptions()
        options.key = .rsa(1024)
        try await withSecureOrigin(options, server: { $0.allowsWeakKeys = true }) { origin, configuration in
            try await withSession(configuration) { session in
                let error = await failure(.certificateWeak, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.description.contains("minimumStrength .any") == true && error?.serverTrust != nil)
            }
            for strength in [Concessions.Strength.any, .bits80] {
                var configuration = configuration
                try Self.concede(in: &configuration) { $0.minimumStrength = strength }
                try await withSession(configuration) { session in
                    let (_, transaction) = try await Self.transaction(session, origin.url())
                    #expect(transaction.tlsConcessions == [.strength])
                }
            }
        }
    }

    @Test("HTTP/2 is not spoken over TLS 1.1, although the server chooses it (RFC 9113 9.2)")
    func http2() async throws {
        try await withSecureOrigin(server: {
            ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls11)
            $0.applicationProtocols = ["h2"]
        }) { origin, configuration in
            var configuration = configuration
            try Self.concede(in: &configuration) { $0.minimumVersion = .tls10 }
            try await withSession(configuration) { session in
                let error = await failure(.secureConnectionFailed, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
                #expect(error?.detail == "the server chose HTTP/2 with TLS 1.1")
            }
        }
    }

    @Test("a proxy with old TLS is refused as a server is, and accepted where that is conceded to it")
    func proxy() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        var tls = HTTPTestServer.TLS(try authority.issue())
        (tls.minimumVersion, tls.maximumVersion) = (.tls10, .tls10)
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            try await withTestProxy(.init(.http, tls: tls)) { proxy in
                var configuration = Configuration.ephemeral
                configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                try await withSession(configuration) { session in
                    let error = await failure(.noCommonTLSVersion, .remote) {
                        try await session.data(from: origin.url())
                    }
                    #expect(error?.proxyFailure != nil && error?.tlsRemedies == [.minimumVersion])
                }
                try Self.concede(in: &configuration) { $0.minimumVersion = .tls10 }
                try await withSession(configuration) { try await $0.expect(origin.url(), "hello") }
            }
        }
    }

    @Test("pins and trust are checked as ever")
    func trust() async throws {
        try await withSecureOrigin(server: { ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls10) }) {
            origin, configuration in
            var configuration = configuration
            try Self.concede(in: &configuration) {
                ($0.minimumVersion, $0.minimumStrength) = (.tls10, .any)
                ($0.allowsInsecureRenegotiation, $0.allowsMissingCloseNotify) = (true, true)
            }
            var pinned = configuration
            pinned.tls.pins = [try .init("localhost", [.publicKey(sha256: Data(count: 32))])]
            try await withSession(pinned) { session in
                await expectFailure(.certificatePinMismatch) { try await session.data(from: origin.url()) }
            }
            configuration.tls.trustRoots = .system
            try await withSession(configuration) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: origin.url()) }
            }
        }
    }

    // MARK: The end of a response

    @Test(
        "a response without a length may end without close_notify where that is conceded",
        arguments: [Version.tls12, .tls13])
    func ends(_ version: Version) async throws {
        try await withSecureOrigin(server: { ($0.omitsCloseNotify, $0.maximumVersion) = (true, version) }) {
            origin, configuration in
            origin.route("/close") { _ in .ok(.untilClose(["some of it"]), headers: [.cacheControl: "max-age=60"]) }
            try await withSession(configuration) { session in
                let error = await failure(.truncated, .remote, .receiving) {
                    try await session.data(from: origin.url("/close"))
                }
                #expect(error?.description.contains("allowsMissingCloseNotify") == true)
            }
            var configuration = configuration
            configuration.caching.store = ResponseCache()
            try Self.concede(in: &configuration) { $0.allowsMissingCloseNotify = true }
            try await withSession(configuration) { session in
                for _ in 0..<2 {
                    let (text, transaction) = try await Self.transaction(session, origin.url("/close"))
                    #expect(text == "some of it")
                    // A cache would serve what may be a part.
                    #expect(transaction.fetchType == .network)
                    #expect(transaction.tlsConcessions == [.missingCloseNotify])
                }
            }
        }
    }

    @Test("a response with a length or chunks is cut as ever, and no setting would help")
    func cut() async throws {
        try await withSecureOrigin(server: { $0.omitsCloseNotify = true }) { origin, configuration in
            origin.route("/short") { _ in .ok(.declared(10, bytes: [1, 2, 3])) }
            origin.route("/chunk", faults: [.init(.responseBody(after: 3), .halfChunk)]) { _ in
                .ok(.chunks(["a", "b"]))
            }
            origin.route("/length") { _ in .ok("all of it", headers: [.connection: "close"]) }
            var configuration = configuration
            try Self.concede(in: &configuration) { $0.allowsMissingCloseNotify = true }
            try await withSession(configuration) { session in
                for path in ["/short", "/chunk"] {
                    let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url(path)) }
                    #expect(error?.party == .remote && error?.tlsRemedies == [], "\(String(describing: error))")
                }
                let (text, transaction) = try await Self.transaction(session, origin.url("/length"))
                #expect(text == "all of it" && transaction.tlsConcessions.isEmpty)
            }
        }
    }

    // MARK: Values

    @Test("a host pattern is checked", arguments: ["", "a b", "*.", "http://a", "*.1.2.3.4"])
    func patterns(_ hosts: String) {
        let error = #expect(throws: LoadError.self) { try Concessions(hosts) }
        #expect(error?.reason == .badHostPattern)
    }

    @Test("sessions that concede differently do not share stored responses")
    func marks() throws {
        var some = Configuration.ephemeral
        let plain = CacheOwner.trust(some)
        try Self.concede(in: &some) { $0.minimumVersion = .tls10 }
        let first = CacheOwner.trust(some)
        some.tls.unsafeConcessions[0].minimumStrength = .any
        #expect(Set([plain, first, CacheOwner.trust(some)]).count == 3)
    }
}
