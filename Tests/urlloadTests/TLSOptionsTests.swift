// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@testable import urlload

struct TLSOptionsTests {
    @Test("Pins are parsed") func pinsAreRead() throws {
        let one = "sha256//" + Data(repeating: 1, count: 32).base64EncodedString()
        let two = "sha256//" + Data(repeating: 2, count: 32).base64EncodedString()
        let options = try ArgumentParser.parse([
            "--pin", one + ";" + two, "--pin", one, "--cert-status", "https://a.example/",
        ])
        #expect(options.tls.pins.map(\.description) == [one, two, one] && options.tls.requiresStatus)
        for wrong in ["sha256//AA", "md5//x", "x"] {
            #expect(throws: UsageError.self) { try ArgumentParser.parse(["--pin", wrong, "https://a.example/"]) }
        }
    }

    @Test("Options for old servers concede to all hosts, and nothing without them") func concessions() throws {
        func tls(_ arguments: String...) throws -> Configuration.TLS {
            let options = try ArgumentParser.parse(arguments + ["https://a.example/"])
            var tls = Configuration.TLS()
            options.tls.apply(to: &tls)
            return tls
        }
        #expect(try tls() == Configuration.TLS())
        #expect(try tls("--ciphers", "DEFAULT").unsafeConcessions.isEmpty)
        let newest = try tls("--tlsv1.3")
        #expect(newest.minimumVersion == .tls13 && newest.unsafeConcessions.isEmpty)
        let lower = try tls("--tls-max", "1.2")
        #expect(lower.maximumVersion == .tls12 && lower.unsafeConcessions.isEmpty)

        let rows: [([String], Configuration.TLS.Version, Configuration.TLS.Version)] = [
            (["--tlsv1.0"], .tls10, .tls13), (["--tlsv1.1"], .tls11, .tls13), (["--tls-max", "1.0"], .tls10, .tls10),
            (["--tls-min", "1.0", "--tls-max", "1.1"], .tls10, .tls11), (["--tls-max", "1.1"], .tls11, .tls11),
        ]
        for (arguments, least, most) in rows {
            let options = try ArgumentParser.parse(arguments + ["https://a.example/"])
            var made = Configuration.TLS()
            options.tls.apply(to: &made)
            let conceded = try #require(made.unsafeConcessions.first)
            #expect(conceded.minimumVersion == least && conceded.maximumVersion == most, "\(arguments)")
            #expect(conceded.minimumStrength == nil && made.minimumVersion == .tls12)
        }
        let all = try tls(
            "--ciphers", "DEFAULT:@SECLEVEL=0", "--insecure-renegotiation", "--missing-close-notify", "--fetch-issuers")
        let conceded = try #require(all.unsafeConcessions.first)
        #expect(conceded.minimumStrength == .any && conceded.minimumVersion == nil && all.fetchesMissingIssuers)
        #expect(conceded.allowsInsecureRenegotiation && conceded.allowsMissingCloseNotify)
        #expect(try tls("--ciphers", "DEFAULT@SECLEVEL=1").unsafeConcessions.first?.minimumStrength == .bits80)
    }

    @Test("The target of urlload tls is a host with an optional port, or an https URL") func targets() {
        for (text, authority) in [
            ("a.example", "a.example:443"), ("a.example:8443", "a.example:8443"),
            ("https://a.example/", "a.example:443"), ("[::1]:4", "[::1]:4"),
            ("https://a.example/path?q", "a.example:443"),
        ] {
            #expect(TLSCommand.Target(text)?.authority == authority)
        }
        for text in ["", "http://a.example", "ftp://a.example/", ":443"] {
            #expect(TLSCommand.Target(text) == nil, "\(text)")
        }
    }

    @Test func `A missing passphrase file is an error, and the content of a certificate file decides its format`()
        async throws
    {
        #expect(throws: UsageError.self) {
            try ArgumentParser.parse(["--cert", "x", "--pass", "@/nowhere", "https://a.example/"])
        }
        let path = FileManager.default.temporaryDirectory.path + "/urlload-\(UUID()).p12"
        defer { try? FileManager.default.removeItem(atPath: path) }
        // PEM in spite of its name, and without a private key.
        try Data(TestCertificateAuthority(commonName: "Test root").pem).write(to: URL(filePath: path))
        let options = TLSOptions(certificateFile: path, passphrase: "x")
        let error = await #expect(throws: LoadError.self) { try await options.identity() }
        #expect(error?.reason == .badClientIdentity && error?.detail == "\(path): there is no private key")
    }
}
