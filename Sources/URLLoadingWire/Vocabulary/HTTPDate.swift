// SPDX-License-Identifier: Apache-2.0

/// A date in HTTP's format (RFC 9110 §5.6.7), with a resolution of one second.
///
/// ```swift
/// HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT")?.secondsSince1970   // 784111777
/// HTTPDate(secondsSince1970: 0).description                     // "Thu, 01 Jan 1970 00:00:00 GMT"
/// ```
public struct HTTPDate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Seconds since 1970-01-01T00:00:00Z, without leap seconds.
    public let secondsSince1970: Int64

    /// Creates a date from seconds since 1970.
    public init(secondsSince1970: Int64) { self.secondsSince1970 = secondsSince1970 }

    /// Compares chronologically.
    public static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }

    /// The date in the preferred format, IMF-fixdate. Dates outside the years 0000 to 9999 are replaced by the nearest
    /// one inside, because the format has four digits for the year.
    public var description: String {
        let seconds = min(max(secondsSince1970, Self.earliest), Self.latest)
        let days = Calendar.floorDivide(seconds, 86400)
        let time = seconds - days * 86400
        let (year, month, day) = Calendar.civil(fromDays: days)
        let weekday = Calendar.weekdays[Int(Calendar.floorModulo(days + 4, 7))]
        return "\(weekday), \(two(day)) \(Calendar.months[Int(month) - 1]) \(two(year / 100))\(two(year % 100)) "
            + "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static let earliest = Calendar.days(year: 0, month: 1, day: 1) * 86400
    private static let latest = Calendar.days(year: 10000, month: 1, day: 1) * 86400 - 1

    private func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// The proleptic Gregorian calendar in whole days. The arithmetic uses years that start in March, so that the leap day
/// is the last one.
enum Calendar {
    static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns the days from 1970-01-01 to a date.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Returns the date that is a number of days after 1970-01-01.
    static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    static func daysIn(month: Int64, of year: Int64) -> Int64 {
        if month == 2 { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28 }
        return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
    }

    static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }

    static func floorModulo(_ value: Int64, _ divisor: Int64) -> Int64 {
        value - floorDivide(value, divisor) * divisor
    }
}
