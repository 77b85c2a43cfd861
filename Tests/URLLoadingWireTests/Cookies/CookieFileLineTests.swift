// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

struct CookieFileLineTests {
    private let plain = CookieFileLine(
        domain: "example.org", includesSubdomains: true, path: "/", isSecure: true, isHTTPOnly: true, expires: 7,
        name: "a", value: "b c")

    @Test("A line is read as it was written")
    func roundTrip() {
        #expect(plain.text == "#HttpOnly_.example.org\tTRUE\t/\tTRUE\t7\ta\tb c")
        #expect(
            plain.text.flatMap { CookieFileLine($0) } == plain && CookieFileLine((plain.text ?? "") + "\r\n") == plain)
        #expect(
            CookieFileLine("example.org\tFALSE\t/\tFALSE\t0\ta\t")?.value == ""
                && CookieFileLine("example.org\tFALSE\t/\tFALSE\t0\ta")?.value == "")
    }

    @Test("The fraction of a second in an expiry is ignored")
    func fraction() {
        let read: [(String, Int64)] = [("4102444800.5", 4_102_444_800), ("7.", 7), ("0.9", 0), ("-1.5", 1)]
        for (text, seconds) in read {
            #expect(CookieFileLine("example.org\tTRUE\t/\tTRUE\t\(text)\ta\tb")?.expires == seconds, "\(text)")
        }
        for text in ["1.x", ".5", "1e9", "1.5.5", "1,5", ""] {
            #expect(CookieFileLine("example.org\tTRUE\t/\tTRUE\t\(text)\ta\tb") == nil, "\(text)")
        }
    }

    @Test(
        "Lines that are not cookies are skipped",
        arguments: [
            "", "# comment", "#HttpOnly_", "a b c", "example.org\tTRUE\t/\tTRUE\t7",
            "example.org\tyes\t/\tTRUE\t7\ta\tb",
            "example.org\tTRUE\tx\tTRUE\t7\ta\tb", "example.org\tTRUE\t/\tTRUE\tsoon\ta\tb", "\tTRUE\t/\tTRUE\t7\ta\tb",
            "example.org\tTRUE\t/\tTRUE\t7\ta\tb\tc", "example.org\tTRUE\t/\tTRUE\t7\ta\tb\u{1}",
        ])
    func refused(_ text: String) { #expect(CookieFileLine(text) == nil) }

    @Test(
        "No field of a cookie can forge a line (security 28)",
        arguments: ["\t", "\n", "\r", "\0", "x\nexample.com\tTRUE\t/\tFALSE\t0\tevil\t1"])
    func forgery(_ text: String) {
        for change in [\CookieFileLine.name, \.value, \.path, \.domain] as [WritableKeyPath<CookieFileLine, String>] {
            var line = plain
            line[keyPath: change] += text
            #expect(line.text == nil)
        }
    }
}
