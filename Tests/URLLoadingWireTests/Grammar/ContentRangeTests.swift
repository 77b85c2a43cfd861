// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 9110 14.4 and 10.2.3.
@Suite struct ContentRangeTests {
    @Test("The three forms of Content-Range are read") func theThreeForms() {
        #expect(ContentRange("bytes 0-9/100") == .part(0..<10, of: 100))
        #expect(ContentRange("bytes 42-1233/1234") == .part(42..<1234, of: 1234), "the example of the RFC")
        #expect(ContentRange("bytes 42-1233/*") == .part(42..<1234, of: nil))
        #expect(ContentRange("bytes */1234") == .unsatisfied(length: 1234))
        #expect(ContentRange("bytes */0") == .unsatisfied(length: 0))
        #expect(ContentRange("Bytes 0-0/1") == .part(0..<1, of: 1), "14.1: units have no case")
        #expect(ContentRange("bytes 0-9223372036854775806/*") == .part(0..<Int64.max, of: nil))
        #expect(ContentRange("bytes 007-008/0009") == .part(7..<9, of: 9), "1*DIGIT")
    }

    @Test(
        "Invalid fields are refused",
        arguments: [
            "", "bytes", "bytes ", "bytes 0-9", "bytes 0-9/", "bytes /9", "bytes */*", "bytes *", "bytes 0-9/9",
            "bytes 9-8/10",
            "bytes -1-2/9", "bytes +1-2/9", "bytes 1-2/+9", "bytes=0-9/100", "bytes  0-9/100", "bytes\t0-9/100",
            "bytes 0 - 9/100",
            "bytes 0-9 /100", "bytes 0-9/100 ", " bytes 0-9/100", "bytes 0-9/100/100", "bytes 0-1-2/100",
            "bytes 0x0-9/100",
            "bytes 0-9/100, bytes 10-19/100", "items 0-9/100", "bytes 0-9223372036854775807/*",
            "bytes 0-9/9223372036854775808",
            "bytes 0-99999999999999999999/*", "bytes 0-9/100\0", "bytes 0-9.0/100", "bytes \u{ff10}-9/100",
            "bytes -/100",
            "bytes 1-/100",
        ]) func refusals(_ text: String)
    {
        #expect(ContentRange(text) == nil)
    }

    @Test("Two fields are refused") func twoFieldsAreNone() {
        var headers: Headers = [.contentRange: "bytes 0-9/100"]
        headers.append(.contentRange, "bytes 0-9/100")
        #expect(ContentRange(headers[.contentRange] ?? "") == nil)
    }

    @Test("Content-Range is written") func writing() {
        for text in ["bytes 0-9/100", "bytes 42-1233/*", "bytes */7"] {
            #expect(ContentRange(text)?.description == text)
        }
        #expect(ContentRange.part(3..<3, of: 3).description == "bytes */3")
    }

    @Test("Retry-After is read as seconds or as a date") func retryAfter() {
        let now = HTTPDate(secondsSince1970: 946_684_700)
        #expect(RetryAfter("120") == .delay(120) && RetryAfter("120")?.seconds(after: now) == 120)
        #expect(RetryAfter("0")?.seconds(after: now) == 0)
        #expect(RetryAfter("99999999999999999999") == .delay(.max), "an eternity, not nothing")
        #expect(RetryAfter("Fri, 31 Dec 1999 23:58:00 GMT")?.seconds(after: now) == 0, "passed")
        #expect(RetryAfter("Sat, 01 Jan 2000 00:00:00 GMT")?.seconds(after: now) == 100)
        #expect(RetryAfter("Saturday, 01-Jan-00 00:00:00 GMT", now: now)?.seconds(after: now) == 100)
        #expect(
            RetryAfter.date(HTTPDate(secondsSince1970: .max)).seconds(after: HTTPDate(secondsSince1970: .min)) == .max)
        #expect(RetryAfter.date(HTTPDate(secondsSince1970: .min)).seconds(after: HTTPDate(secondsSince1970: .max)) == 0)
        for bad in ["", "-1", "+1", "1.5", "1 ", " 1", "1s", "soon", "120, 120", "0x10", "\u{ff11}"] {
            #expect(RetryAfter(bad) == nil, "\(bad)")
        }
    }
}
