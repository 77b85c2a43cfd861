// SPDX-License-Identifier: Apache-2.0

// In this folder: cookies, their dates and domains, HSTS, cookie files, as parsers

// Dates in Set-Cookie, parsed with the very lenient algorithm of RFC 6265bis §5.1.1.

/// ```swift
/// CookieDate.parse("Wed, 09 Jun 2021 10:18:14 GMT".utf8)   // 1623233894
/// CookieDate.parse("09-Jun-21 10:18:14".utf8)              // the same
/// ```
package enum CookieDate {
    /// Returns seconds since 1970; `nil` for text that even this algorithm does not take for a date.
    package static func parse(_ text: some Sequence<UInt8>) -> Int64? {
        var found = Found()
        var token: [UInt8] = []
        for byte in text {
            if isDelimiter(byte) {
                found.take(token)
                token.removeAll(keepingCapacity: true)
            } else {
                token.append(byte)
            }
        }
        found.take(token)
        return found.seconds
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private struct Found {
        var time: Int64?
        var day: Int64?
        var month: Int64?
        var year: Int64?

        /// Stores a token as the first component that it can be and that is still missing.
        mutating func take(_ token: [UInt8]) {
            guard !token.isEmpty else { return }
            if time == nil, let value = Self.time(token) {
                time = value
            } else if day == nil, let value = Self.number(token[...], digits: 1...2) {
                day = value
            } else if month == nil, let value = Self.month(token) {
                month = value
            } else if year == nil, let value = Self.number(token[...], digits: 2...4) {
                year = value
            }
        }

        var seconds: Int64? {
            guard let time, time >= 0, let day, let month, var year else { return nil }
            if (70...99).contains(year) { year += 1900 } else if (0...69).contains(year) { year += 2000 }
            guard year >= 1601, (1...Calendar.daysIn(month: month, of: year)).contains(day) else { return nil }
            return Calendar.days(year: year, month: month, day: day) * 86400 + time
        }

        /// Parses the digits at the start of a token; `nil` if their count is out of range, which includes a further
        /// digit.
        private static func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int64? {
            let leading = token.prefix { $0.isDigit }
            guard digits.contains(leading.count) else { return nil }
            return leading.reduce(0) { $0 * 10 + Int64($1 & 0x0F) }
        }

        private static func time(_ token: [UInt8]) -> Int64? {
            let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0].allSatisfy(\.isDigit), parts[1].allSatisfy(\.isDigit),
                let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
                let second = number(parts[2], digits: 1...2)
            else { return nil }
            // An impossible time is still recognised as a time, and makes the date invalid.
            guard hour <= 23, minute <= 59, second <= 59 else { return -1 }
            return hour * 3600 + minute * 60 + second
        }

        private static func month(_ token: [UInt8]) -> Int64? {
            guard token.count >= 3 else { return nil }
            let name = token.prefix(3).map(\.lowered)
            return Calendar.months.firstIndex { $0.utf8.elementsEqual(name) { $0.lowered == $1 } }.map { Int64($0) + 1 }
        }
    }
}
