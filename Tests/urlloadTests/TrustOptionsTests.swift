import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@testable import urlload

struct TrustOptionsTests {
    @Test func pinsAreRead() throws {
        let one = "sha256//" + Data(repeating: 1, count: 32).base64EncodedString()
        let two = "sha256//" + Data(repeating: 2, count: 32).base64EncodedString()
        let options = try ArgumentParser.parse(["--pin", one + ";" + two, "--pin", one, "--cert-status", "https://a.example/"])
        #expect(options.trust.pins.map(\.description) == [one, two, one] && options.trust.requiresStatus)
        for wrong in ["sha256//AA", "md5//x", "x"] {
            #expect(throws: UsageError.self) { try ArgumentParser.parse(["--pin", wrong, "https://a.example/"]) }
        }
    }

    @Test func targets() {
        for (text, authority) in [("a.example", "a.example:443"), ("a.example:8443", "a.example:8443"), ("https://a.example/", "a.example:443"), ("[::1]:4", "[::1]:4")] {
            #expect(TLSCommand.Target(text)?.authority == authority)
        }
        for text in ["", "http://a.example", "a.example/path", ":443"] { #expect(TLSCommand.Target(text) == nil, "\(text)") }
    }
}
