// SPDX-License-Identifier: Apache-2.0

// Servers with old TLS, by `openssl s_server`: one process for each test, on a port that the system chooses.

import Foundation
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// The system's `openssl`, as a server of one certificate.
private struct OpenSSLServer {
    static let path = "/usr/bin/openssl"
    static let isHere = FileManager.default.isExecutableFile(atPath: path)

    let port: String
    /// The certificate in PEM, for clients that trust it alone.
    let certificatePath: String
    /// By its address: `localhost` is `::1` too, where the same port may be another server's.
    var place: String { "127.0.0.1:\(port)" }
    var url: URL { URL(string: "https://\(place)/")! }

    /// Runs a server for the duration of a closure.
    /// - Parameters:
    ///   - key: the arguments of `openssl req` for the key and the signature of its own certificate.
    ///   - options: those of `s_server`.
    static func with(
        key: [String] = ["-newkey", "rsa:2048"], _ options: [String], _ use: (OpenSSLServer) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let (certificate, keyFile) = (folder.path + "/own.pem", folder.path + "/own.key")
        try await makeCertificate(key, certificate, keyFile)
        try await with(certificate: certificate, key: keyFile, options, use)
    }

    /// Makes a self-signed certificate for 127.0.0.1, with its key.
    static func makeCertificate(_ key: [String], _ certificate: String, _ keyFile: String) async throws {
        let made = try await Running.command(
            path,
            ["req", "-x509", "-nodes", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"] + key
                + ["-days", "2", "-keyout", keyFile, "-out", certificate])
        try #require(made.code == 0, "\(made.errors)")
    }

    static func with(
        certificate: String, key: String, _ options: [String], _ use: (OpenSSLServer) async throws -> Void
    ) async throws {
        let server = try Running(
            path, ["s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-www"] + options)
        let result: Result<Void, any Error>
        do {
            try await server.eventuallyText { $0.contains("ACCEPT 127.0.0.1:") && $0.hasSuffix("\n") }
            let line = try #require(server.text.split(separator: "\n").first { $0.hasPrefix("ACCEPT") })
            let port = String(try #require(line.split(separator: ":").last))
            try await use(OpenSSLServer(port: port, certificatePath: certificate))
            result = .success(())
        } catch { result = .failure(error) }
        server.send(SIGTERM)
        _ = try await server.wait()
        try result.get()
    }

    var configuration: Configuration {
        var configuration = Configuration.ephemeral
        configuration.networks.proxyPolicy = .none
        configuration.timeouts.idle = .seconds(20)
        configuration.tls.trustRoots = .file(URL(filePath: certificatePath))
        return configuration
    }
}

/// A server of tlslite-ng, without RFC 5746 and without close_notify: `Tests/Servers/oldtls.py`.
private enum OlderServer {
    static let python = "/usr/bin/python3"
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path
    static let modules = package + "/.build/test-packages/modules"
    static let isHere =
        FileManager.default.isExecutableFile(atPath: python)
        && FileManager.default.fileExists(atPath: modules + "/tlslite") && OpenSSLServer.isHere

    static func with(_ use: (OpenSSLServer) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let (certificate, key) = (folder.path + "/own.pem", folder.path + "/own.key")
        try await OpenSSLServer.makeCertificate(["-newkey", "rsa:2048"], certificate, key)
        let server = try Running(
            python, ["-I", package + "/Tests/Servers/oldtls.py", modules, certificate, key])
        let result: Result<Void, any Error>
        do {
            try await server.eventuallyText { $0.hasSuffix("\n") }
            try await use(
                OpenSSLServer(
                    port: server.text.trimmingCharacters(in: .newlines), certificatePath: certificate))
            result = .success(())
        } catch { result = .failure(error) }
        server.send(SIGTERM)
        _ = try await server.wait()
        try result.get()
    }
}

@Suite(.enabled(if: OpenSSLServer.isHere, "There is no openssl"), .timeLimit(.minutes(4)))
struct OldTLSTests {
    typealias Concessions = Configuration.TLS.UnsafeConcessions

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var key = ["-newkey", "rsa:2048"]
        let server: [String]
        let reason: LoadError.Reason
        let remedy: LoadError.TLSRemedy
        let used: Concessions.Kind
        /// The option of urlload, and the code it exits with without it.
        let option: [String]
        var code: Int32 = 35
        /// Concedes it.
        let change: @Sendable (inout Concessions) -> Void
    }

    private static let anyLevel = ["-cipher", "DEFAULT:@SECLEVEL=0"]

    static let rows = [
        Row(
            testDescription: "TLS 1.0", server: ["-tls1"] + anyLevel, reason: .noCommonTLSVersion,
            remedy: .minimumVersion, used: .version, option: ["--tlsv1.0"]
        ) { $0.minimumVersion = .tls10 },
        Row(
            testDescription: "TLS 1.1", server: ["-tls1_1"] + anyLevel, reason: .noCommonTLSVersion,
            remedy: .minimumVersion, used: .version, option: ["--tlsv1.1"]
        ) { $0.minimumVersion = .tls11 },
        Row(
            testDescription: "TLS 1.0, and no more is offered", server: ["-tls1"] + anyLevel,
            reason: .noCommonTLSVersion, remedy: .minimumVersion, used: .version, option: ["--tls-max", "1.0"]
        ) { ($0.minimumVersion, $0.maximumVersion) = (.tls10, .tls10) },
        Row(
            testDescription: "RSA with 1024 bits and SHA-1", key: ["-newkey", "rsa:1024", "-sha1"], server: anyLevel,
            reason: .certificateWeak, remedy: .minimumStrength, used: .strength,
            option: ["--ciphers", "DEFAULT@SECLEVEL=0"], code: 60
        ) { $0.minimumStrength = .any },
        Row(
            testDescription: "a handshake signed with SHA-1", server: ["-tls1_2", "-sigalgs", "RSA+SHA1"] + anyLevel,
            reason: .secureConnectionFailed, remedy: .minimumStrength, used: .strength,
            option: ["--ciphers", "DEFAULT@SECLEVEL=0"]
        ) { $0.minimumStrength = .any },
    ]

    @Test("an old server is refused, the error names what would help, and that helps", arguments: rows)
    func old(_ row: Row) async throws {
        try await OpenSSLServer.with(key: row.key, row.server) { server in
            var configuration = server.configuration
            try await withSession(configuration) { session in
                let error = try await failure(session, Request(url: server.url))
                #expect(error.reason == row.reason && error.tlsRemedies.contains(row.remedy), "\(error)")
            }
            var conceded = try Concessions("127.0.0.1")
            row.change(&conceded)
            configuration.tls.unsafeConcessions = [conceded]
            try await withSession(configuration) { session in
                // The second connection resumes the session of the first.
                for _ in 0..<2 {
                    let task = session.dataTask(from: server.url)
                    task.resume()
                    let data = try await task.value
                    #expect(String(decoding: data, as: UTF8.self).contains("Ciphers supported in s_server binary"))
                    let transaction = try #require(try await task.metrics.transactions.last)
                    #expect(transaction.tlsConcessions == [row.used], "\(transaction)")
                }
            }
        }
    }

    @Test("urlload names the option, and has it", arguments: rows)
    func command(_ row: Row) async throws {
        try await OpenSSLServer.with(key: row.key, row.server) { server in
            let plain = ["-sS", "--noproxy", "*", "--cacert", server.certificatePath, server.url.absoluteString]
            let refused = try await Running.urlload(plain)
            #expect(refused.code == row.code, "\(refused.errors)")
            let option = row.option == ["--tlsv1.1"] || row.option[0] == "--tls-max" ? "--tlsv1.0" : row.option[0]
            #expect(refused.errors.contains(option), "\(refused.errors)")
            let accepted = try await Running.urlload(row.option + plain)
            #expect(
                accepted.code == 0 && accepted.text.contains("Ciphers supported in s_server binary"),
                "\(accepted.errors)")
        }
    }

    @Test("urlload tls says which version and which concession was used")
    func shown() async throws {
        try await OpenSSLServer.with(["-tls1"] + Self.anyLevel) { server in
            let shown = try await Running.urlload([
                "tls", "--noproxy", "*", "--tlsv1.0", "--cacert", server.certificatePath, server.place,
            ])
            #expect(shown.code == 0, "\(shown.errors)")
            #expect(
                shown.text.contains("TLS 1.0, ") && shown.text.contains("not safe: conceded version"), "\(shown.text)")
            let refused = try await Running.urlload([
                "tls", "--noproxy", "*", "--cacert", server.certificatePath, server.place,
            ])
            #expect(refused.code == 35 && refused.errors.contains("--tlsv1.0"), "\(refused.errors)")
        }
    }

    /// Parameters of Diffie-Hellman with 1024 bits, by `openssl dhparam 1024`, which takes long.
    private static let shortGroup = """
        -----BEGIN DH PARAMETERS-----
        MIGHAoGBANXCQ9fymbQpwlH4/f/lMTY4NnX7eRsu+/ec+4piCDcWcaFQFYI+sRjg
        Gq3NT7rnmT3KjuBJlXAkSy38tHfWsaLTQXmIP7bp5bS3/1NivTcwU4gIDeFz9zaS
        3J96KmxfjeruTS5kMfk9jrrK/LmWrcQ5GtxQJAz633BKiz3e9LPHAgEC
        -----END DH PARAMETERS-----

        """

    @Test("a key exchange with 1024 bits is refused, and accepted where the strength is conceded")
    func keyExchange() async throws {
        let folder = try TemporaryFolder()
        let parameters = folder.path + "/dh.pem"
        try Data(Self.shortGroup.utf8).write(to: URL(fileURLWithPath: parameters))
        let options = ["-tls1_2", "-dhparam", parameters, "-cipher", "DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0"]
        try await OpenSSLServer.with(options) { server in
            var configuration = server.configuration
            try await withSession(configuration) { session in
                let error = try await failure(session, Request(url: server.url))
                #expect(error.reason == .weakHandshake && error.tlsRemedies == [.minimumStrength], "\(error)")
            }
            var conceded = try Concessions("127.0.0.1")
            conceded.minimumStrength = .bits80
            configuration.tls.unsafeConcessions = [conceded]
            try await withSession(configuration) { session in
                let task = session.dataTask(from: server.url)
                task.resume()
                _ = try await task.value
                #expect(try await task.metrics.transactions.last?.tlsConcessions == [.strength])
            }
        }
    }

    @Test("a chain without its intermediate is completed, also by urlload; an address that lies is an error")
    func missingIntermediate() async throws {
        try await withHTTPTestServer { library in
            let root = try TestCertificateAuthority(commonName: "Test root")
            let intermediate = try root.intermediate(commonName: "Test intermediate")
            var options = TestCertificateOptions(addresses: [[127, 0, 0, 1]])
            options.issuerLocations = [library.url("/issuer").absoluteString]
            let identity = try intermediate.issue(options)
            let folder = try TemporaryFolder()
            for (name, bytes) in [
                ("root.pem", root.pem), ("issuer.pem", intermediate.pem), ("leaf.pem", identity.certificatePEM),
                ("leaf.key", identity.keyPEM),
            ] {
                try Data(bytes).write(to: URL(fileURLWithPath: folder.path + "/" + name))
            }
            let converted = try await Running.command(
                OpenSSLServer.path,
                ["x509", "-in", folder.path + "/issuer.pem", "-outform", "DER", "-out", folder.path + "/issuer.der"])
            try #require(converted.code == 0, "\(converted.errors)")
            let der = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/issuer.der"))
            library.route("/issuer") { _ in .ok(.bytes([UInt8](der))) }
            // s_server takes the first certificate of the file.
            try await OpenSSLServer.with(
                certificate: folder.path + "/leaf.pem", key: folder.path + "/leaf.key", []
            ) { server in
                let plain = [
                    "-sS", "--noproxy", "*", "--cacert", folder.path + "/root.pem", server.url.absoluteString,
                ]
                let refused = try await Running.urlload(plain)
                #expect(refused.code == 60 && refused.errors.contains("--fetch-issuers"), "\(refused.errors)")
                let accepted = try await Running.urlload(["--fetch-issuers"] + plain)
                #expect(accepted.code == 0 && accepted.text.contains("s_server"), "\(accepted.errors)")
                #expect(library.requests.count == 1)
                let drawn = try await Running.urlload([
                    "tls", "--noproxy", "*", "--fetch-issuers", "--cacert", folder.path + "/root.pem",
                    server.place,
                ])
                #expect(
                    drawn.text.contains("✓ trusted") && drawn.text.contains("CN=Test intermediate  (not sent)"),
                    "\(drawn.text)")
                library.route("/issuer") { _ in .ok("<html>") }
                let lied = try await Running.urlload(["--fetch-issuers"] + plain)
                #expect(lied.code == 60 && lied.errors.contains("neither a certificate in DER nor PKCS#7"))
            }
        }
    }

    // MARK: A server without RFC 5746 and without close_notify

    @Test(
        "a server without secure renegotiation and close_notify needs both concessions",
        .enabled(if: OlderServer.isHere, "script/setup --tests installs tlslite-ng"))
    func older() async throws {
        try await OlderServer.with { server in
            var configuration = server.configuration
            try await withSession(configuration) { session in
                let error = try await failure(session, Request(url: server.url))
                #expect(error.reason == .insecureRenegotiation && error.party == .remote, "\(error)")
                #expect(error.tlsRemedies == [.insecureRenegotiation], "\(error)")
            }
            var conceded = try Concessions("127.0.0.1")
            conceded.allowsInsecureRenegotiation = true
            configuration.tls.unsafeConcessions = [conceded]
            try await withSession(configuration) { session in
                let error = try await failure(session, Request(url: server.url))
                #expect(error.reason == .truncated && error.tlsRemedies == [.missingCloseNotify], "\(error)")
            }
            conceded.allowsMissingCloseNotify = true
            configuration.tls.unsafeConcessions = [conceded]
            try await withSession(configuration) { session in
                for _ in 0..<2 {
                    let task = session.dataTask(from: server.url)
                    task.resume()
                    let data = try await task.value
                    #expect(String(decoding: data, as: UTF8.self) == "from an old server\n")
                    let used = try await task.metrics.transactions.last?.tlsConcessions
                    #expect(used == [.renegotiation, .missingCloseNotify])
                }
            }
        }
    }

    @Test(
        "urlload names the options for such a server, and has them",
        .enabled(if: OlderServer.isHere, "script/setup --tests installs tlslite-ng"))
    func olderCommand() async throws {
        try await OlderServer.with { server in
            let plain = ["-sS", "--noproxy", "*", "--cacert", server.certificatePath, server.url.absoluteString]
            let refused = try await Running.urlload(plain)
            #expect(refused.code == 35 && refused.errors.contains("--insecure-renegotiation"), "\(refused.errors)")
            let cut = try await Running.urlload(["--insecure-renegotiation"] + plain)
            #expect(cut.code == 18 && cut.errors.contains("--missing-close-notify"), "\(cut.errors)")
            let accepted = try await Running.urlload(["--insecure-renegotiation", "--missing-close-notify"] + plain)
            #expect(accepted.code == 0 && accepted.text == "from an old server\n", "\(accepted.errors)")
        }
    }
}
