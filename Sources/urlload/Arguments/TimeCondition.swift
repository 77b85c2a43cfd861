// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import URLLoading

/// The argument of `-z`: a condition on the time of the last change (If-Modified-Since, If-Unmodified-Since).
struct TimeCondition: Sendable, Hashable {
    let date: HTTPDate?
    let isBefore: Bool

    /// - Parameter text: a date, or the path of a file whose modification time is used; without such a file there is no
    ///   condition. A leading `-` asks for resources that are older.
    init(_ text: String) throws(UsageError) {
        isBefore = text.hasPrefix("-")
        let text = isBefore || text.hasPrefix("+") ? String(text.dropFirst()) : text
        if let date = Self.date(text) {
            self.date = date
            return
        }
        var status = stat()
        date = stat(text, &status) == 0 ? HTTPDate(secondsSince1970: Int64(status.st_mtim.tv_sec)) : nil
    }

    /// The condition "newer than this file"; `nil` if the file does not exist.
    init?(file path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        date = HTTPDate(secondsSince1970: Int64(status.st_mtim.tv_sec))
        isBefore = false
    }

    /// Whether a resource that was changed at that time is wanted.
    func isFulfilled(by modified: HTTPDate) -> Bool {
        guard let date else { return true }
        return isBefore
            ? modified.secondsSince1970 <= date.secondsSince1970 : modified.secondsSince1970 > date.secondsSince1970
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, `6 Nov 1994 [08:49:37]`, `1994-11-06 [08:49:37]` or `19941106`, in GMT.
    static func date(_ text: String) -> HTTPDate? {
        if let date = HTTPDate(text) { return date }
        let words = text.split { " ,T".contains($0) }.map(String.init).filter { !["GMT", "UTC", "Z"].contains($0) }
        var day: (year: String, month: String, day: String)?
        var time = "00:00:00"
        var loose: [String] = []
        for word in words {
            if word.contains(":") {
                let clock = word.hasSuffix("Z") ? String(word.dropLast()) : word
                time = clock.split(separator: ":").count == 2 ? clock + ":00" : clock
            } else if let found = isoDay(word) {
                day = found
            } else {
                loose.append(word)
            }
        }
        if day == nil { day = wordDay(loose) }
        guard let day else { return nil }
        return HTTPDate("Mon, \(day.day) \(day.month) \(day.year) \(time) GMT")
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func isoDay(_ word: String) -> (String, String, String)? {
        let digits = word.filter { $0 != "-" }
        guard digits.count == 8, Int(digits) != nil, word.count == 8 || word.count == 10,
            let month = Int(digits.dropFirst(4).prefix(2)), (1...12).contains(month)
        else { return nil }
        return (String(digits.prefix(4)), months[month - 1], String(digits.suffix(2)))
    }

    private static func wordDay(_ words: [String]) -> (String, String, String)? {
        let month = words.first { word in months.contains { $0.lowercased() == word.prefix(3).lowercased() } }
        let numbers = words.filter { Int($0) != nil }
        guard let month, numbers.count == 2, let year = numbers.first(where: { $0.count == 4 }),
            let day = numbers.first(where: { $0.count < 3 })
        else { return nil }
        return (year, month.prefix(3).capitalized, day.count == 1 ? "0" + day : day)
    }
}
