// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 6265bis §5.1.1.
struct CookieDateTests {
    @Test(
        "Dates are read in the forms that servers send",
        arguments: [
            "Wed, 09 Jun 2021 10:18:14 GMT", "Wed, 09-Jun-21 10:18:14 GMT", "Wed Jun  9 10:18:14 2021",
            "9 june 2021 10:18:14",
            "2021 10:18:14 Jun 9", "10:18:14,09/Jun/2021", "Wednesday, 09-JUNE-2021 10:18:14 +0100",
            "10:18:14 9 Jun 2021 12:00:00",
            "9th Jun 2021 10:18:14x",
        ])
    func accepted(_ text: String) { #expect(CookieDate.parse(text.utf8) == 1_623_233_894) }

    @Test(
        "Text that is not a date is refused",
        arguments: [
            "", "Jun 2021 10:18:14", "9 2021 10:18:14", "9 Jun 10:18:14", "9 Jun 2021", "9 Jun 2021 10:18",
            "9 Jun 2021 24:00:00",
            "9 Jun 2021 10:60:14", "9 Jun 2021 10:18:60", "32 Jun 2021 10:18:14", "31 Jun 2021 10:18:14",
            "29 Feb 2021 10:18:14",
            "0 Jun 2021 10:18:14", "9 Jun 1600 10:18:14", "9 Jun 20211 10:18:14", "9 Ju 2021 10:18:14",
            "99:99:99 9 Jun 2021 10:18:14",
            "9 Jun 2021 101:18:14", "009 Jun 2021 10:18:14",
        ])
    func refused(_ text: String) { #expect(CookieDate.parse(text.utf8) == nil) }

    @Test(
        "A year of two digits is of this century up to 69",
        arguments: [
            ("70", Int64(0)), ("99", 915_148_800), ("00", 946_684_800), ("69", 3_124_224_000), ("1970", 0),
            ("1601", -11_644_473_600),
        ])
    func years(_ year: String, _ seconds: Int64) { #expect(CookieDate.parse("1 Jan \(year) 00:00:00".utf8) == seconds) }
}
