// SPDX-License-Identifier: Apache-2.0

// Parses a date in the preferred format (RFC 9110 §5.6.7) from its bytes: `Sun, 06 Nov 1994 08:49:37 GMT`. `HTTPDate`
// parses all other input.

enum FixedDate {
    static func seconds(_ text: UnsafeRawBufferPointer) -> Int64? {
        guard text.count == 29, isWeekday(text), text[3] == UInt8(ascii: ","), text[4] == space, text[7] == space,
            text[11] == space,
            text[16] == space, text[19] == colon, text[22] == colon,
            UnsafeRawBufferPointer(rebasing: text[25..<29]).equals(" GMT"),
            let day = number(text, 5, 2), let month = month(text), let year = number(text, 12, 4),
            let hour = number(text, 17, 2),
            let minute = number(text, 20, 2), let second = number(text, 23, 2)
        else { return nil }
        // Day 31 and the end of February are rare, so `HTTPDate` checks them.
        guard (1...30).contains(day), day <= 28 || month != 2, year >= 1970, hour < 24, minute < 60, second <= 60 else {
            return nil
        }
        return days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static let space = UInt8(ascii: " ")
    private static let colon = UInt8(ascii: ":")

    private static func number(_ text: UnsafeRawBufferPointer, _ start: Int, _ count: Int) -> Int64? {
        var number: Int64 = 0
        for index in start..<start + count {
            guard (0x30...0x39).contains(text[index]) else { return nil }
            number = number * 10 + Int64(text[index] &- 0x30)
        }
        return number
    }

    private static func letters(_ text: UnsafeRawBufferPointer, _ start: Int) -> UInt32 {
        UInt32(text[start]) << 16 | UInt32(text[start + 1]) << 8 | UInt32(text[start + 2])
    }

    private static func isWeekday(_ text: UnsafeRawBufferPointer) -> Bool {
        switch letters(text, 0) {
        // Mon Tue Wed Thu Fri Sat Sun
        case 0x4D6F6E, 0x547565, 0x576564, 0x546875, 0x467269, 0x536174, 0x53756E: true
        default: false
        }
    }

    private static func month(_ text: UnsafeRawBufferPointer) -> Int64? {
        switch letters(text, 8) {
        case 0x4A616E: 1  // Jan
        case 0x466562: 2  // Feb
        case 0x4D6172: 3  // Mar
        case 0x417072: 4  // Apr
        case 0x4D6179: 5  // May
        case 0x4A756E: 6  // Jun
        case 0x4A756C: 7  // Jul
        case 0x417567: 8  // Aug
        case 0x536570: 9  // Sep
        case 0x4F6374: 10  // Oct
        case 0x4E6F76: 11  // Nov
        case 0x446563: 12  // Dec
        default: nil
        }
    }

    /// Days since 1970. The year is shifted to begin in March, so that a leap day comes last.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + ofYear - 719_468
    }
}
