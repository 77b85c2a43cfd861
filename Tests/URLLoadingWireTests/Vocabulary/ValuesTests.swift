// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import URLLoadingWire

@Suite struct ValuesTests {
    @Test("Methods are case-sensitive; known ones may be safe and idempotent") func methods() {
        #expect(Method.query.isSafe && Method.query.isIdempotent)
        #expect(Method.get.isSafe && Method.get.isIdempotent && Method.put.isIdempotent && !Method.put.isSafe)
        #expect(
            !Method.post.isIdempotent && !Method.patch.isIdempotent && !Method("get").isSafe && Method("get") != .get)
        #expect(Method("M-SEARCH").isValid && !Method("").isValid && !Method("A B").isValid)
    }

    @Test("A text is cut between characters, to a number of bytes") func prefixes() {
        #expect("abc".prefix(utf8Count: 3) == "abc" && "abc".prefix(utf8Count: 2) == "ab")
        #expect("a\u{E9}b".prefix(utf8Count: 2) == "a" && "a\u{E9}b".prefix(utf8Count: 3) == "a\u{E9}")
        // A character of more bytes than there is room for, and none.
        #expect("e\u{301}\u{302}".prefix(utf8Count: 4).isEmpty && "".prefix(utf8Count: 0).isEmpty)
        // A line end of two bytes is one character.
        #expect("a\r\n".prefix(utf8Count: 2) == "a")
    }

    @Test("Statuses have three digits") func statuses() {
        #expect(Status(99) == nil && Status(1000) == nil && Status(999)?.kind == .serverError)
        #expect(
            [100, 200, 300, 400, 500].compactMap { Status($0)?.kind } == [
                .informational, .successful, .redirection, .clientError, .serverError,
            ])
        #expect(Status.notFound.description == "404 Not Found" && Status(299)?.description == "299")
        #expect(
            HTTPVersion.http10 < .http11 && HTTPVersion.http11.description == "HTTP/1.1"
                && HTTPVersion.http2.description == "HTTP/2")
    }

    @Test("Media types are parsed") func mediaTypes() {
        let type = MediaType("Text/HTML ; Charset=\"UTF-8\"; x=\"a\\\"b\" ;; y=1;")
        #expect(type?.essence == "text/html" && type?.charset == "utf-8" && type?["X"] == "a\"b" && type?["z"] == nil)
        #expect(type?.description == "text/html; charset=UTF-8; x=\"a\\\"b\"; y=1")
        for bad in [
            "", "text", "text/", "/html", "text/html x", "te xt/html", "text/html,text/plain", "text/html\n", ";a=b",
        ] {
            #expect(MediaType(bad) == nil && MediaType(strict: bad) == nil, "\(bad)")
        }
    }

    @Test(
        "Invalid parameters of a received media type are dropped",
        arguments: [
            ("text/html; charset", "text/html"), ("text/html; a=; b=1", "text/html; b=1"),
            ("text/html; a=\"", "text/html; a=\"\""),
            ("text/html; a=\"\n\"; b=1", "text/html; b=1"), ("text/html; a=x\ry;b=1", "text/html; b=1"),
            ("text/html; =1;b=1", "text/html; b=1"), ("text/html; a b=1;c=1", "text/html; c=1"),
            ("text/html;a=\"x;y\" junk;b=1", "text/html; a=\"x;y\"; b=1"),
            ("text/html;a=\"x\\", "text/html; a=\"x\\\\\""),
            ("text/html;a=x y ;b=1", "text/html; a=\"x y\"; b=1"), ("text/html;\"a;b=1", "text/html; b=1"),
            ("text/html;", "text/html"),
        ])
    func oddParameters(_ text: String, _ read: String) throws {
        let type = try #require(MediaType(text))
        #expect(type.description == read && MediaType(read) == type && MediaType(strict: read) == type)
    }

    @Test(
        "A media type to be sent must be valid",
        arguments: [
            "text/html; a", "text/html; a=", "text/html; a=\"", "text/html; a=\"\n\"", "text/html; a=b\r\nX: y",
            "text/html; a=b c",
        ])
    func strictMediaTypes(_ text: String) {
        #expect(MediaType(strict: text) == nil && MediaType(text) != nil)
        #expect(
            MediaType(strict: "Text/Plain ;; charset=\"utf-8\" ; x=1") == MediaType("text/plain; charset=utf-8; x=1"))
    }

    @Test("HTTP dates are parsed in all three forms") func dates() {
        let now = HTTPDate(secondsSince1970: 1_767_225_600)  // 2026-01-01
        let forms = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 1994 08:49:37 +0000",
        ]
        for text in forms.flatMap({ [$0, $0.lowercased(), $0.uppercased()] }) {
            #expect(HTTPDate(text, now: now)?.secondsSince1970 == 784_111_777, "\(text)")
        }
        #expect(HTTPDate("Sunday, 06-Nov-75 08:49:37 GMT", now: now)?.description == "Wed, 06 Nov 2075 08:49:37 GMT")
        #expect(HTTPDate("Sunday, 06-Nov-77 08:49:37 GMT", now: now)?.description == "Sun, 06 Nov 1977 08:49:37 GMT")
        #expect(HTTPDate("Thu, 29 Feb 2024 23:59:60 GMT")?.description == "Fri, 01 Mar 2024 00:00:00 GMT")
        for bad in [
            "", "0", "-1", "Sun, 006 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 +0200", "Sun, 06 Nov 1994 08:49:37 -0000", "Sun, 06 Nov 1994 08:49:37 UTCGMT",
            "Sun, 06 Nov 1994 08:49:37 CET", "Sun,  6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun Nov 6 08:49:37 1994",
            "Thu, 29 Feb 2100 00:00:00 GMT", "Sun, 06 Nov +994 08:49:37 GMT",
        ] {
            #expect(HTTPDate(bad, now: now) == nil, "\(bad)")
        }
    }

    @Test("HTTP dates are written as they are parsed") func datesBackAndForth() {
        var seconds: Int64 = -62_167_219_200  // 0000-01-01
        while seconds < 253_402_300_799 {
            let date = HTTPDate(secondsSince1970: seconds)
            #expect(HTTPDate(date.description) == date)
            seconds += 97_354_321
        }
        #expect(HTTPDate(secondsSince1970: .max).description == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate(secondsSince1970: .min).description == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    @Test("Descriptions of violations contain no secrets") func violationsHaveNoSecrets() {
        let violation = WireViolation(.remote, .bareLineFeed, at: 3, section: "RFC 9112 2.2")
        #expect(
            violation.description
                == "bareLineFeed: a line ends with a line feed alone, at byte 3 of the head (RFC 9112 2.2)")
        let limit = WireViolation(.remote, .headTooLarge, at: 65536, section: "RFC 9110 5.4")
        #expect(limit.explanation == "the head is larger than the limit of 65536 bytes (RFC 9110 5.4)")
    }

    @Test("Each violation has a sentence") func eachViolationHasASentence() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/URLLoadingWire")
            .path(percentEncoded: false)
        var codes: Set<String> = []
        for name in try FileManager.default.subpathsOfDirectory(atPath: sources) where name.hasSuffix(".swift") {
            let text = String(decoding: try Data(contentsOf: URL(filePath: sources + "/" + name)), as: UTF8.self)
            guard text.contains("extension WireViolation") else { continue }
            for line in text.split(separator: "\n") where line.contains("public static let ") {
                let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
                if parts.count == 3, parts[0].hasSuffix("Code(") || parts[0].hasSuffix("(rawValue: ") {
                    codes.insert(String(parts[1]))
                }
            }
        }
        #expect(codes.count > 70 && codes.contains("malformedChunkSize") && codes.contains("malformedAgentFrame"))
        #expect(codes == Set(WireViolation.sentences.keys))
    }

    @Test("Byte sets contain their bytes") func byteSetsContainTheirBytes() {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        let digits = "0123456789"
        let unreserved = letters + digits + "-._~"
        let delimiters = "!$&'()*+,;="
        for (set, text) in [
            (ByteSet.token, letters + digits + "!#$%&'*+-.^_`|~"), (.unreserved, unreserved),
            (.path, unreserved + delimiters + ":@/%"), (.query, unreserved + delimiters + ":@/?%"),
            (.userinfo, unreserved + delimiters + ":%"), (.registeredName, unreserved + delimiters + "%"),
            (.scheme, letters + digits + "+-."), (.repairable, " |\"<>^`{}[]"),
            (.hostField, unreserved + "!$&'()*+;=%:[]"), (.hostName, letters.lowercased() + digits + "-_."),
        ] {
            for byte in UInt8.min...UInt8.max { #expect(set.contains(byte) == text.utf8.contains(byte)) }
        }
    }
}
