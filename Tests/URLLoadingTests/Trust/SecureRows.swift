// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// Security 31 to 36, 39, 87 through the whole library, by loads of https URLs.
@Suite(.timeLimit(.minutes(4)))
struct SecureRows {
    struct Certificate: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let options: TestCertificateOptions
        let host: String
        let reason: LoadError.Reason?

        init(
            _ row: String, _ names: [String], addresses: [[UInt8]] = [], commonName: String = "test",
            loading host: String, _ reason: LoadError.Reason?
        ) {
            testDescription = "\(row): \(names.map(\.debugDescription)) \(addresses) for \(host)"
            options = TestCertificateOptions(names: names, addresses: addresses, commonName: commonName)
            self.host = host
            self.reason = reason
        }

        init(_ row: String, _ reason: LoadError.Reason?, _ change: (inout TestCertificateOptions) -> Void) {
            testDescription = row
            var options = TestCertificateOptions()
            change(&options)
            self.options = options
            host = "localhost"
            self.reason = reason
        }
    }

    static let certificates: [Certificate] = [
        Certificate("plain", ["a.example"], loading: "a.example", nil),
        Certificate("case", ["A.Example"], loading: "a.EXAMPLE", nil),
        Certificate("31 wildcard", ["*.a.example"], loading: "b.a.example", nil),
        Certificate("31 two labels", ["*.a.example"], loading: "c.b.a.example", .certificateNameMismatch),
        Certificate("31 no label", ["*.a.example"], loading: "a.example", .certificateNameMismatch),
        Certificate("31 partial", ["b*.a.example"], loading: "bc.a.example", .certificateNameMismatch),
        Certificate("31 in the middle", ["b.*.example"], loading: "b.a.example", .certificateNameMismatch),
        Certificate("31 all", ["*"], loading: "example", .certificateNameMismatch),
        Certificate("31 IDN", ["x*.example"], loading: "xn--bcher-kva.example", .certificateNameMismatch),
        Certificate("31 address", ["*.0.0.1"], loading: "127.0.0.1", .certificateNameMismatch),
        Certificate("32 NUL", ["a.example\0.evil.example"], loading: "a.example", .certificateNameMismatch),
        Certificate("33 address", [], addresses: [[127, 0, 0, 1]], loading: "127.0.0.1", nil),
        Certificate(
            "33 address as name", ["127.0.0.1"], commonName: "127.0.0.1", loading: "127.0.0.1", .certificateNameMismatch
        ),
        Certificate(
            "33 other address", ["127.0.0.1"], addresses: [[127, 0, 0, 2]], loading: "127.0.0.1",
            .certificateNameMismatch),
        Certificate("34 KELVIN SIGN", ["\u{212A}elvin.example"], loading: "kelvin.example", .certificateNameMismatch),
        Certificate("34 IDN", ["xn--bcher-kva.example"], loading: "xn--bcher-kva.example", nil),
        Certificate("common name only", [], commonName: "a.example", loading: "a.example", .certificateNameMismatch),
        Certificate("other name", ["b.example"], loading: "a.example", .certificateNameMismatch),
        Certificate("36 expired", .certificateExpired) { $0.validity = .past },
        Certificate("36 not yet valid", .certificateNotYetValid) { $0.validity = .future },
        Certificate("36 self-signed", .certificateSelfSigned) { $0.isSelfSigned = true },
        Certificate("36 bad signature", .certificateSignatureInvalid) { $0.hasBadSignature = true },
        Certificate("35 for clients", .certificateInvalid) { $0.isForServers = false },
    ]

    @Test(
        "a certificate must be valid, and name what the URL names (security 31, 32, 33, 34, 36)",
        arguments: certificates
    )
    func certificate(_ certificate: Certificate) async throws {
        try await withSecureOrigin(certificate.options) { origin, configuration in
            origin.route("/") { _ in .ok("secret") }
            let target = try url("https://\(certificate.host):\(origin.port)/")
            for _ in 1...2 {
                try await withSession(configuration) { session in
                    guard let reason = certificate.reason else { return try await session.expect(target, "secret") }
                    let error = await failure(reason, .remote, .securing, certificate.testDescription) {
                        try await session.data(from: target)
                    }
                    #expect(error?.url == target)
                }
            }
            #expect(origin.counts.requests == (certificate.reason == nil ? 2 : 0))
        }
    }

    @Test("an untrusted issuer is refused, except in a configuration for experiments (security 36)")
    func untrusted() async throws {
        try await withSecureOrigin { origin, trusting in
            origin.route("/") { _ in .ok("x") }
            var other = Configuration.ephemeral
            other.tls.trustRoots = .pem(
                String(decoding: try TestCertificateAuthority(commonName: "Another").pem, as: UTF8.self))
            try await withSession(other) { session in
                await expectFailure(.certificateUntrusted, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
            }
            other.tls.unsafelySkipsVerification = true
            try await withSession(other) { try await $0.expect(origin.url(), "x") }
            try await withSession(trusting) { try await $0.expect(origin.url(), "x") }
            other = .ephemeral
            other.tls.trustRoots = .file(URL(filePath: "/nonexistent/roots.pem"))
            try await withSession(other) { session in
                await expectFailure(.trustRootsUnavailable, .local, .securing) {
                    try await session.data(from: origin.url())
                }
            }
        }
    }

    @Test("a certificate that is no authority cannot issue others (security 35)")
    func constraints() async throws {
        try await withSecureOrigin(through: { try $0.intermediate(commonName: "No CA", isAuthority: false) }) {
            origin, configuration in
            try await withSession(configuration) { session in
                let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url()) }
                #expect(error?.phase == .securing && error?.party == .remote)
                #expect(error?.reason == .certificateInvalid || error?.reason == .certificateUntrusted)
            }
        }
    }

    @Test("versions without a common one are refused (checklist 23)")
    func versions() async throws {
        try await withSecureOrigin(server: { $0.maximumVersion = .tls12 }) { origin, configuration in
            var configuration = configuration
            origin.route("/") { .ok($0.tls?.version ?? "-") }
            try await withSession(configuration) { try await $0.expect(origin.url(), "TLSv1.2") }
            configuration.tls.minimumVersion = .tls13
            try await withSession(configuration) { session in
                await expectFailure(.noCommonTLSVersion, .remote, .securing) {
                    try await session.data(from: origin.url())
                }
            }
        }
    }

    @Test(
        "a body that ends with the connection must end with close_notify (security 39)", arguments: [false, true],
        [Configuration.TLS.Version.tls12, .tls13])
    func truncation(_ omitsCloseNotify: Bool, _ version: Configuration.TLS.Version) async throws {
        try await withSecureOrigin(server: {
            $0.omitsCloseNotify = omitsCloseNotify
            $0.maximumVersion = version
        }) { origin, configuration in
            origin.route("/close") { _ in .ok(.untilClose(["some of it"])) }
            origin.route("/length") { _ in .ok("all of it", headers: [.connection: "close"]) }
            try await withSession(configuration) { session in
                if omitsCloseNotify {
                    await expectFailure(.truncated, .remote, .receiving) {
                        try await session.data(from: origin.url("/close"))
                    }
                } else {
                    try await session.expect(origin.url("/close"), "some of it")
                }
                // A body with a length needs no close_notify.
                try await session.expect(origin.url("/length"), "all of it")
            }
        }
    }

    @Test("over http, too, a length or a last chunk is required (security 39)")
    func truncatedInTheClear() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/close") { _ in .ok(.untilClose(["all we know of"])) }
            origin.route("/short") { _ in .ok(.declared(10, bytes: [1, 2, 3])) }
            origin.route("/reset", faults: [.init(.responseBody(after: 5), .reset)]) { _ in .ok("0123456789") }
            origin.route("/chunk", faults: [.init(.responseBody(after: 3), .halfChunk)]) { _ in
                .ok(.chunks(["a", "b"]))
            }
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url("/close"), "all we know of")
                for path in ["/short", "/reset", "/chunk"] {
                    let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url(path)) }
                    #expect(error?.code == -1005 || path == "/chunk", "\(path) \(String(describing: error))")
                    #expect(error?.party == .remote)
                }
            }
        }
    }

    @Test("TLS sessions are resumed, and idle connections reused without a handshake")
    func resumption() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/close") { .ok("\($0.tls?.isResumed ?? false)", headers: [.connection: "close"]) }
            origin.route("/keep") { .ok("\($0.connection)") }
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/close"), "false")
                try await session.expect(origin.url("/close"), "true")
                try await session.expect(origin.url("/keep"), "3")
                try await session.expect(origin.url("/keep"), "3")
            }
            // Another session has other settings.
            try await withSession(configuration) { try await $0.expect(origin.url("/close"), "false") }
        }
    }

    @Test("a resumed connection sends no request before its handshake is complete (security 87)")
    func noEarlyData() async throws {
        try await withSecureOrigin { origin, configuration in
            origin.route("/") { .ok("\($0.tls?.isResumed ?? false)", headers: [.connection: "close"]) }
            let hellos = Lock<[[UInt8]]>([])
            let relay = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            let token = StopToken()
            async let relaying: Void = relayConnections(relay, to: origin.port, token) { first in
                hellos.withLock { $0.append(first) }
            }
            try await withSession(configuration) { session in
                let target = try url("https://localhost:\(relay.address.port)/")
                try await session.expect(Request(url: target, method: .post, body: .data(Data("x".utf8))), "false")
                try await session.expect(Request(url: target, method: .post, body: .data(Data("x".utf8))), "true")
                try await session.expect(target, "true")
            }
            token.stop(.cancelled)
            await relaying
            let extensions = hellos.withLock { $0 }.map { ClientHello.extensions(of: $0) }
            #expect(extensions.map { $0.contains(41) } == [false, true, true], "pre_shared_key")
            #expect(extensions.allSatisfy { !$0.isEmpty && !$0.contains(42) }, "early_data")
        }
    }
}
