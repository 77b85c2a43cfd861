// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

@testable import URLLoading

/// The fast date parser agrees with the general one.
struct FixedDateTests {
    private func short(_ text: String) -> Int64? { Array(text.utf8).withUnsafeBytes { FixedDate.seconds($0) } }

    @Test("dates of four hundred years are computed correctly") func everyDayOfFourHundredYears() {
        for day in 0..<146_097 as Range<Int64> {
            let date = HTTPDate(secondsSince1970: day * 86_400 + day % 86_400)
            guard let seconds = short(date.description) else {
                let isRare = date.description.contains("31 ") || date.description.contains(" Feb ")
                #expect(isRare)
                continue
            }
            guard seconds != date.secondsSince1970 else { continue }
            Issue.record("\(date): \(seconds)")
        }
    }

    @Test(
        "a date in another form is read by the full parser",
        arguments: [
            "", "0", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 2000 00:00:00 GMT",
            "Tue, 29 Feb 1900 00:00:00 GMT", "Sun, 30 Feb 2020 00:00:00 GMT", "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1969 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08-49:37 GMT",
        ])
    func whatIsOdd(_ text: String) {
        let long = HTTPDate(text)?.secondsSince1970
        if let short = short(text) { #expect(short == long) }
        let headers: Headers = [.date: text]
        let read = headers.date(.date)
        #expect(read == long.map { Double($0) })
    }
}
