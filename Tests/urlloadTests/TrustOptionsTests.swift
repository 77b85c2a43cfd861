// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@testable import urlload

struct TrustOptionsTests {
    @Test("Pins are parsed") func pinsAreRead() throws {
        let one = "sha256//" + Data(repeating: 1, count: 32).base64EncodedString()
        let two = "sha256//" + Data(repeating: 2, count: 32).base64EncodedString()
        let options = try ArgumentParser.parse([
            "--pin", one + ";" + two, "--pin", one, "--cert-status", "https://a.example/",
        ])
        #expect(options.trust.pins.map(\.description) == [one, two, one] && options.trust.requiresStatus)
        for wrong in ["sha256//AA", "md5//x", "x"] {
            #expect(throws: UsageError.self) { try ArgumentParser.parse(["--pin", wrong, "https://a.example/"]) }
        }
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
        let options = TrustOptions(certificateFile: path, passphrase: "x")
        let error = await #expect(throws: LoadError.self) { try await options.identity() }
        #expect(error?.reason == .badClientIdentity && error?.detail == "\(path): there is no private key")
    }
}
