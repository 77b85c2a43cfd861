// SPDX-License-Identifier: Apache-2.0

extension HTTPDate {
    /// Parses any of the three date formats (RFC 9110 §5.6.7); `nil` for anything else.
    ///
    /// - Parameters:
    ///   - text: the value of a field such as Date or Expires.
    ///   - now: the time from which "more than 50 years in the future" is counted for the two-digit year of the
    ///     obsolete RFC 850 format. Without it, two digits mean 1970 to 2069.
    ///
    /// Names are case-insensitive (RFC 9111 §4.2). The day of the month and the time are checked. The weekday only
    /// needs to be the name of one, because a wrong weekday rarely means a wrong date. In the preferred format the day
    /// of the month may have one digit, and the zone may be `UTC` or `+0000`: servers write so, and browsers read it.
    public init?(_ text: String, now: HTTPDate? = nil) {
        var scanner = DateScanner(text)
        guard let fields = scanner.imfFixdate() ?? scanner.rfc850(now: now) ?? scanner.asctime(),
            let seconds = fields.seconds
        else { return nil }
        self.init(secondsSince1970: seconds)
    }
}

private struct DateFields {
    var year: Int64 = 0
    var month: Int64 = 0
    var day: Int64 = 0
    var time: Int64 = 0

    var seconds: Int64? {
        guard (1...Calendar.daysIn(month: month, of: year)).contains(day) else { return nil }
        return Calendar.days(year: year, month: month, day: day) * 86400 + time
    }
}

private struct DateScanner {
    private let all: Substring.UTF8View
    private var rest: Substring.UTF8View

    init(_ text: String) {
        all = Substring(text).utf8
        rest = all
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, also with `6 Nov` and with another name of the same zone.
    mutating func imfFixdate() -> DateFields? {
        rest = all
        guard word(of: Calendar.weekdays) != nil, take(", "), let day = number(2) ?? number(1), take(" "),
            let month = word(of: Calendar.months), take(" "), let year = number(4), take(" "),
            let time = time(), take(" GMT") || take(" UTC") || take(" +0000"), rest.isEmpty
        else { return nil }
        return DateFields(year: year, month: Int64(month) + 1, day: day, time: time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    mutating func rfc850(now: HTTPDate?) -> DateFields? {
        rest = all
        let names = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
        guard word(of: names) != nil, take(", "), let day = number(2), take("-"),
            let month = word(of: Calendar.months), take("-"), let short = number(2), take(" "),
            let time = time(), take(" GMT"), rest.isEmpty
        else { return nil }
        var fields = DateFields(year: 0, month: Int64(month) + 1, day: day, time: time)
        fields.year = Self.fullYear(short, fields, now: now)
        return fields
    }

    /// `Sun Nov  6 08:49:37 1994`
    mutating func asctime() -> DateFields? {
        rest = all
        guard word(of: Calendar.weekdays) != nil, take(" "), let month = word(of: Calendar.months), take(" "),
            let day = take(" ") ? number(1) : number(2), take(" "), let time = time(), take(" "),
            let year = number(4), rest.isEmpty
        else { return nil }
        return DateFields(year: year, month: Int64(month) + 1, day: day, time: time)
    }

    /// Returns the full year: a date more than 50 years in the future becomes the most recent past one with the same
    /// last two digits.
    private static func fullYear(_ short: Int64, _ fields: DateFields, now: HTTPDate?) -> Int64 {
        guard let now else { return short < 70 ? 2000 + short : 1900 + short }
        let clamped = min(max(now.secondsSince1970, 0), 253_402_300_799)
        let today = Calendar.civil(fromDays: Calendar.floorDivide(clamped, 86400))
        var year = today.year - today.year % 100 + short
        if year + 50 < today.year { year += 100 }
        let limit = (today.year + 50, today.month, today.day, clamped % 86400)
        if year > 9999 || (year, fields.month, fields.day, fields.time) > limit { year -= 100 }
        return year
    }

    private mutating func time() -> Int64? {
        guard let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2),
            hour < 24, minute < 60, second <= 60  // 60: a leap second
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func take(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8, by: { $0.lowered == $1.lowered }) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }

    private mutating func word(of names: [String]) -> Int? {
        names.firstIndex { take($0) }
    }

    private mutating func number(_ digits: Int) -> Int64? {
        guard rest.count >= digits, rest.prefix(digits).allSatisfy(\.isDigit) else { return nil }
        defer { rest = rest.dropFirst(digits) }
        return rest.prefix(digits).reduce(0) { $0 * 10 + Int64($1 &- 0x30) }
    }
}
