// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Servers that do not send their intermediate certificates, and the addresses at which these are.
@Suite(.timeLimit(.minutes(4)))
struct MissingIssuerRows {
    /// A server that sends its own certificate alone, and the server of its issuers.
    struct Rig {
        let library: HTTPTestServer
        let origin: HTTPTestServer
        /// Fetches missing issuers.
        var configuration: Configuration
        /// The authorities below the root, in DER, from the one that the root issued.
        let issuers: [[UInt8]]
        /// The settings of another server with a certificate of the same issuer.
        let otherTLS: HTTPTestServer.TLS

        var fetches: [String] { library.requests.map(\.target) }
    }

    /// The settings of a server that sends its own certificate alone.
    private static func secure(_ identity: TestIdentity) throws -> HTTPTestServer.TLS {
        let end = "-----END CERTIFICATE-----\n"
        let text = String(decoding: identity.certificatePEM, as: UTF8.self)
        let own = try #require(text.split(separator: end).first) + end
        return HTTPTestServer.TLS(certificatePEM: Array(own.utf8), keyPEM: identity.keyPEM)
    }

    /// - Parameters:
    ///   - count: the authorities between the root and the server's certificate.
    ///   - names: whether the certificates name the address of their issuer.
    ///   - place: the address for the issuer of a certificate, by its number; the root's is 0.
    ///   - status: stapled by the server.
    private static func with(
        _ count: Int = 1, names: Bool = true,
        at place: (HTTPTestServer, Int) throws -> String = { server, number in
            server.url("/\(number)").absoluteString
        }, clock: ManualClock? = nil, staples status: TestCertificateAuthority.Status? = nil,
        _ use: (Rig) async throws -> Void
    ) async throws {
        try await withHTTPTestServer(.init(clock: clock)) { library in
            let root = try TestCertificateAuthority(commonName: "Test root")
            var (authority, issuers) = (root, [[UInt8]]())
            for number in 0..<count {
                let locations = names && number > 0 ? [try place(library, number)] : []
                authority = try authority.intermediate(
                    commonName: "Authority \(number + 1)", issuerLocations: locations)
                issuers.append([UInt8](try #require(Certificate(pem: authority.pem)).der))
            }
            for (index, der) in issuers.enumerated() {
                library.route("/\(index + 1)") { _ in .ok(.bytes(der)) }
            }
            var options = TestCertificateOptions()
            if names { options.issuerLocations = [try place(library, count)] }
            let otherTLS = try secure(try authority.issue(options))
            let identity = try authority.issue(options)
            var tls = try secure(identity)
            if let status { tls.stapledOCSPResponse = try authority.status(of: identity, status) }
            var configuration = Configuration.ephemeral
            configuration.networks.proxyPolicy = .none
            configuration.tls.trustRoots = .pem(String(decoding: root.pem, as: UTF8.self))
            configuration.tls.fetchesMissingIssuers = true
            try await withHTTPTestServer(.init(tls: tls)) { origin in
                origin.route("/") { _ in .ok("hello") }
                try await use(
                    Rig(
                        library: library, origin: origin, configuration: configuration, issuers: issuers,
                        otherTLS: otherTLS))
            }
        }
    }

    /// Expects that the chain is refused, for a reason with these words.
    private static func expectRefusal(
        _ rig: Rig, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withSession(rig.configuration) { session in
            let error = await failure(
                .certificateUntrusted, .remote, .securing, sourceLocation: sourceLocation
            ) { try await session.data(from: rig.origin.url()) }
            #expect(
                error?.detail?.contains("its issuer was not fetched") == true
                    && error?.detail?.contains(words) == true,
                "\(String(describing: error))", sourceLocation: sourceLocation)
        }
    }

    @Test("without the option the chain is refused, and the error says that it would help")
    func off() async throws {
        try await Self.with { rig in
            var configuration = rig.configuration
            configuration.tls.fetchesMissingIssuers = false
            try await withSession(configuration) { session in
                let error = await failure(.certificateUntrusted, .remote, .securing) {
                    try await session.data(from: rig.origin.url())
                }
                let address = rig.library.url("/1").absoluteString
                #expect(
                    error?.description.contains("tls.fetchesMissingIssuers fetches the issuer from \(address)") == true)
                #expect(error?.tlsRemedies == [.missingIssuer(address)])
            }
            #expect(rig.fetches.isEmpty)
        }
    }

    @Test("the issuers are fetched, three at most, and remembered", arguments: [1, 2, 3])
    func fetched(_ count: Int) async throws {
        try await Self.with(count) { rig in
            try await withSession(rig.configuration) { session in
                for _ in 0..<2 {
                    try await session.expect(rig.origin.url(), "hello")
                    session.closeIdleConnections()
                }
            }
            #expect(rig.fetches == (1...count).reversed().map { "/\($0)" })
        }
    }

    @Test("another server of the same issuer is loaded from without another fetch")
    func remembered() async throws {
        try await Self.with(2) { rig in
            try await withHTTPTestServer(.init(tls: rig.otherTLS)) { other in
                other.route("/") { _ in .ok("hello") }
                try await withSession(rig.configuration) { session in
                    try await session.expect(rig.origin.url(), "hello")
                    try await session.expect(other.url(), "hello")
                }
            }
            #expect(rig.fetches == ["/2", "/1"])
        }
    }

    @Test("reloadTLS forgets the issuers, and may be what enables the fetch")
    func reloaded() async throws {
        try await Self.with(2) { rig in
            var configuration = rig.configuration
            configuration.tls.fetchesMissingIssuers = false
            try await withSession(configuration) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
                for _ in 0..<2 {
                    session.reloadTLS(rig.configuration.tls)
                    try await session.expect(rig.origin.url(), "hello")
                }
            }
            #expect(rig.fetches == ["/2", "/1", "/2", "/1"])
        }
    }

    @Test("a request for an issuer has no cookies and no credentials")
    func fields() async throws {
        try await Self.with { rig in
            var configuration = rig.configuration
            configuration.headers = [.authorization: "Basic eDp5", .cookie: "a=b"]
            try await withSession(configuration) { try await $0.expect(rig.origin.url(), "hello") }
            let request = try #require(rig.library.requests.first)
            #expect(request.headers[.authorization] == nil && request.headers[.cookie] == nil)
        }
    }

    @Test("PKCS#7 is read")
    func packed() async throws {
        try await Self.with(2) { rig in
            rig.library.route("/2") { _ in .ok(.bytes(PKCS7.message(rig.issuers))) }
            try await withSession(rig.configuration) { try await $0.expect(rig.origin.url(), "hello") }
            #expect(rig.fetches == ["/2"], "both issuers are in one file")
        }
    }

    @Test("a redirect is followed to http, and to no other scheme")
    func redirects() async throws {
        try await Self.with { rig in
            let (library, der) = (rig.library, rig.issuers[0])
            let target = library.url("/moved").absoluteString
            library.route("/1") { _ in .init(status: .found, headers: [.location: target]) }
            library.route("/moved") { _ in .ok(.bytes(der)) }
            try await withSession(rig.configuration) { try await $0.expect(rig.origin.url(), "hello") }
            for place in ["https://localhost/x", "ftp://localhost/x", "file:///etc/passwd"] {
                library.route("/1") { _ in .init(status: .found, headers: [.location: place]) }
                try await Self.expectRefusal(rig, "issuers are fetched over http only")
            }
            library.route("/1") { _ in .init(status: .found, headers: [.location: "/1"]) }
            try await Self.expectRefusal(rig, "more than 3 redirects")
        }
    }

    @Test(
        "an address of another scheme is not used", arguments: ["https://localhost/ca.der", "ldap://localhost/cn=ca"])
    func schemes(_ place: String) async throws {
        try await Self.with(at: { _, _ in place }) { rig in
            try await Self.expectRefusal(rig, "issuers are fetched over http only")
        }
    }

    @Test("a stapled status is verified with the issuers that were fetched (security 38)")
    func staples() async throws {
        let cases: [(TestCertificateAuthority.Status, LoadError.Reason?)] = [
            (.good, nil), (.revoked, .certificateRevoked),
        ]
        for (status, reason) in cases {
            try await Self.with(2, staples: status) { rig in
                var configuration = rig.configuration
                configuration.tls.ocspStapling = .required
                try await withSession(configuration) { session in
                    guard let reason else { return try await session.expect(rig.origin.url(), "hello") }
                    await expectFailure(reason) { try await session.data(from: rig.origin.url()) }
                }
                #expect(rig.fetches == ["/2", "/1"])
            }
        }
    }

    @Test("a certificate without an address is refused as such")
    func noAddress() async throws {
        try await Self.with(names: false) { rig in
            try await Self.expectRefusal(rig, "CN=test names no address of its issuer")
        }
    }

    @Test("a chain without end is given up after three steps")
    func endless() async throws {
        try await Self.with(4) { rig in
            try await Self.expectRefusal(rig, "more than 3 issuers are missing")
            #expect(rig.fetches.count == 3)
        }
    }

    @Test("a huge file is not read to its end", arguments: [false, true])
    func huge(_ isChunked: Bool) async throws {
        try await Self.with { rig in
            rig.library.route("/1") { _ in .ok(.repeated(count: 1 << 30, chunked: isChunked)) }
            try await Self.expectRefusal(rig, "more than 64 KiB")
        }
    }

    @Test("a wrong file is a clear error")
    func wrong() async throws {
        try await Self.with { rig in
            let library = rig.library
            for body in ["", "<html>", "-----BEGIN CERTIFICATE-----\n"] {
                library.route("/1") { _ in .ok(body) }
                try await Self.expectRefusal(rig, "is neither a certificate in DER nor PKCS#7")
            }
            library.route("/1") { _ in .init(status: .notFound) }
            try await Self.expectRefusal(rig, "the server answered 404")
            library.route("/1") { _ in .ok(.declared(100, bytes: [1])) }
            try await Self.expectRefusal(rig, "truncated")
            let stranger = try TestCertificateAuthority(commonName: "Stranger")
            let der = [UInt8](try #require(Certificate(pem: stranger.pem)).der)
            library.route("/1") { _ in .ok(.bytes(der)) }
            try await Self.expectRefusal(rig, "is not the issuer's of CN=test")
        }
    }

    @Test("an impostor of the issuer's name proves nothing")
    func impostor() async throws {
        try await Self.with { rig in
            let other = try TestCertificateAuthority(commonName: "Test root").intermediate(commonName: "Authority 1")
            let der = [UInt8](try #require(Certificate(pem: other.pem)).der)
            rig.library.route("/1") { _ in .ok(.bytes(der)) }
            try await Self.expectRefusal(rig, "is not the issuer's of CN=test")
            // It is not remembered either: once the address has the issuer's certificate, that one is used.
            try await withSession(rig.configuration) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: rig.origin.url()) }
                let issuer = rig.issuers[0]
                rig.library.route("/1") { _ in .ok(.bytes(issuer)) }
                try await session.expect(rig.origin.url(), "hello")
            }
        }
    }

    @Test("a server that names itself gets its own certificate back, which is no issuer")
    func itself() async throws {
        try await Self.with { rig in
            try await withSession(rig.configuration) { session in
                let error = await #expect(throws: LoadError.self) {
                    rig.library.route("/1") { _ in .init(status: .notFound) }
                    _ = try await session.data(from: rig.origin.url())
                }
                let own = [UInt8](try #require(error?.serverTrust?.certificates.first).der)
                rig.library.route("/1") { _ in .ok(.bytes(own)) }
            }
            try await Self.expectRefusal(rig, "is the certificate itself, not its issuer's")
        }
    }

    @Test("an address that the session's policy forbids is not asked")
    func policy() async throws {
        try await Self.with(at: { server, _ in "http://127.0.0.2:\(server.port)/1" }) { rig in
            var rig = rig
            rig.configuration.networks.addressPolicy = AddressPolicy { $0.host != "127.0.0.2" }
            try await Self.expectRefusal(rig, "addressRefused")
            #expect(rig.fetches.isEmpty)
        }
        try await Self.with { rig in
            var rig = rig
            rig.configuration.networks.addressPolicy = AddressPolicy { $0.host != "127.0.0.2" }
            let place = "http://127.0.0.2:\(rig.library.port)/moved"
            rig.library.route("/1") { _ in .init(status: .found, headers: [.location: place]) }
            try await Self.expectRefusal(rig, "addressRefused")
            #expect(rig.fetches == ["/1"])
        }
    }

    @Test("the session's proxy is used, which forwards the request")
    func proxy() async throws {
        try await Self.with { rig in
            try await withTestProxy { proxy in
                var configuration = rig.configuration
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                try await withSession(configuration) { try await $0.expect(rig.origin.url(), "hello") }
                #expect(rig.fetches == ["/1"])
                #expect(proxy.connections == 2, "one tunnel, and one request that was forwarded")
            }
        }
    }

    @Test("address overrides hold for the issuer's address, also behind a proxy, which then opens a tunnel")
    func overridden() async throws {
        try await Self.with(at: { _, _ in "http://ca.test/1" }) { rig in
            var configuration = rig.configuration
            configuration.networks.addressOverrides = [
                try .connect("ca.test", port: 80, to: "127.0.0.1", onPort: rig.library.port)
            ]
            try await withSession(configuration) { try await $0.expect(rig.origin.url(), "hello") }
            try await withTestProxy { proxy in
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                try await withSession(configuration) { try await $0.expect(rig.origin.url(), "hello") }
                #expect(proxy.requests.map(\.target).contains("127.0.0.1:\(rig.library.port)"))
            }
            #expect(rig.fetches == ["/1", "/1"] && rig.library.requests.allSatisfy { $0.headers[.host] == "ca.test" })
        }
    }

    @Test("an address that does not answer is given up after five seconds")
    func silence() async throws {
        let clock = ManualClock()
        try await Self.with(clock: clock) { rig in
            rig.library.route("/1", faults: [.init(.responseHead(after: 0), .stall)]) { _ in .ok("") }
            var configuration = rig.configuration
            configuration.use(clock)
            let session = Session(configuration)
            let url = rig.origin.url()
            let running = Task {
                await failure(.certificateUntrusted, .remote, .securing) { try await session.data(from: url) }
            }
            try await eventually(rig.fetches) { $0 == ["/1"] }
            try await clock.untilWaiting()
            clock.advance(by: .seconds(5))
            let error = await running.value
            #expect(error?.detail?.contains("no answer within 5 seconds") == true, "\(String(describing: error))")
            session.invalidateAndCancel()
            await session.invalidated()
        }
    }

    @Test("a load that is cancelled during a fetch ends as cancelled")
    func cancelled() async throws {
        try await Self.with { rig in
            rig.library.route("/1", faults: [.init(.responseHead(after: 0), .stall)]) { _ in .ok("") }
            try await withSession(rig.configuration) { session in
                let task = session.dataTask(from: rig.origin.url()).resumed()
                try await eventually(rig.fetches) { $0 == ["/1"] }
                task.cancel()
                await expectFailure(.cancelled) { try await task.value }
            }
        }
    }

    @Test("a decision about trust sees the whole chain, and hears of no failure")
    func decided() async throws {
        try await Self.with { rig in
            let asked = Asked()
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                asked.add(challenge)
                return .performDefaultHandling
            }
            try await withSession(rig.configuration, decisions: decisions) {
                try await $0.expect(rig.origin.url(), "hello")
            }
            let trust = try #require(asked.trusts.first)
            #expect(asked.trusts.count == 1 && trust.isTrusted)
            #expect(trust.certificates.count == 1 && trust.chain.count == 3)
        }
    }

    @Test("of many addresses, the oldest are forgotten")
    func memory() throws {
        let (first, other) = (
            try TestCertificateAuthority(commonName: "A"), try TestCertificateAuthority(commonName: "A")
        )
        func facts(_ pem: [UInt8]) throws -> CertificateFacts {
            let certificate = try #require(Certificate(pem: pem))
            return try #require(CertificateFacts(der: [UInt8](certificate.der)))
        }
        let (issuer, leaf) = (try facts(first.pem), try facts(try first.issue().certificatePEM))
        let memory = IssuerMemory()
        for number in 0...IssuerMemory.countLimit { memory.keep([issuer], at: "\(number)") }
        #expect(memory.certificates(at: "0", of: leaf) == nil && memory.certificates(at: "1", of: leaf) == [issuer])
        let stranger = try facts(try other.issue().certificatePEM)
        #expect(memory.certificates(at: "1", of: stranger) == nil, "the same name, and another key")
    }
}
