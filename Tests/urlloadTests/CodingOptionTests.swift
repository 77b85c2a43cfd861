// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import URLLoading
@testable import urlload

/// Accept-Encoding of requests, and the treatment of coded bodies.
struct CodingOptionTests {
    private func made(_ words: String...) throws -> (Configuration, Request) {
        let options = try ArgumentParser.parse(words + ["http://example.org/"])
        let address = try #require(URL(string: "http://example.org/"))
        return (Configuration(options, Screen(options)), try Request(options, address))
    }

    @Test(
        "A file keeps the bytes as they were sent, unless --compressed is given", arguments: [["-o", "file"], ["-O"]])
    func files(_ destination: [String]) throws {
        let options = try ArgumentParser.parse(destination + ["http://example.org/a"])
        #expect(!options.decodes)
        let decoding = try ArgumentParser.parse(destination + ["--compressed", "http://example.org/a"])
        #expect(decoding.decodes)
    }

    @Test("Standard output gets decoded bodies, unless --no-compressed is given")
    func standardOutput() throws {
        let usual = try made()
        #expect(usual.0.acceptEncoding != nil && usual.1.contentDecoding == .ifOffered)
        let raw = try made("--no-compressed")
        #expect(raw.0.acceptEncoding == nil && raw.1.contentDecoding == .never)
        let file = try made("-o", "file")
        #expect(file.0.acceptEncoding == nil && file.1.contentDecoding == .never)
        let decoded = try made("-o", "file", "--compressed")
        #expect(decoded.0.acceptEncoding != nil && decoded.1.contentDecoding == .always)
    }

    @Test("--connect-timeout takes fractions of seconds", arguments: [("5", 5.0), ("0.25", 0.25), ("2.5", 2.5)])
    func connectTimeout(_ text: String, _ seconds: Double) throws {
        let configuration = try made("--connect-timeout", text).0
        #expect(configuration.timeouts.connect == .seconds(seconds))
    }

    @Test("--connect-timeout refuses other text", arguments: ["-1", "soon", "nan", ""])
    func badConnectTimeout(_ text: String) {
        #expect(throws: UsageError.self) { try ArgumentParser.parse(["--connect-timeout", text, "u"]) }
    }

    @Test("There is no connect timeout without --connect-timeout or with 0, as in curl")
    func noConnectTimeout() throws {
        #expect(try made("--connect-timeout", "0").0.timeouts.connect == nil)
        let configuration = try made().0
        #expect(configuration.timeouts.connect == nil)
    }

    @Test(
        "An internationalised host is shown as its A-label",
        arguments: [
            ("http://b\u{FC}cher.example/a?b=c#d", "http://xn--bcher-kva.example/a?b=c#d"),
            ("http://u:p@b\u{FC}cher.example:81/", "http://xn--bcher-kva.example:81/"),
            ("http://example.org/%C3%BC", "http://example.org/%C3%BC"),
        ])
    func hosts(_ text: String, _ shown: String) throws {
        let address = try #require(URL(string: text))
        #expect(AddressText.shown(address) == shown)
    }

    @Test("The message about a server without HTTP/2 is a sentence")
    func notHTTP2() {
        #expect(ErrorWords.sentence(.notHTTP2)?.contains("does not speak HTTP/2") == true)
        #expect(ErrorWords.sentence(.connectTimeout)?.contains("--connect-timeout") == true)
    }
}
