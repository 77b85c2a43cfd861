/// When to come back: after so long, or at a moment (RFC 9110 10.2.3).
///
/// ```swift
/// RetryAfter("120")?.seconds(after: now)                             // 120
/// RetryAfter("Fri, 31 Dec 1999 23:59:59 GMT")?.seconds(after: now)   // 0
/// ```
///
/// What the server says; how much of it to believe is for whoever waits.
package enum RetryAfter: Sendable, Hashable {
    /// So many seconds from the receipt of the answer; more than can be counted is `Int64.max`.
    case delay(Int64)
    /// Not before this moment.
    case date(HTTPDate)

    /// The value of a Retry-After field; `nil` if it is not in the grammar: no sign, no fraction.
    /// - Parameter now: see ``HTTPDate/init(_:now:)``.
    package init?(_ text: String, now: HTTPDate? = nil) {
        if !text.isEmpty, text.utf8.allSatisfy(\.isDigit) {
            self = .delay(Int64(strictDigits: text.utf8) ?? .max)
        } else if let date = HTTPDate(text, now: now) {
            self = .date(date)
        } else {
            return nil
        }
    }

    /// How long to wait from `now` on, in seconds; 0 for a moment that has passed.
    package func seconds(after now: HTTPDate) -> Int64 {
        switch self {
        case .delay(let seconds): return seconds
        case .date(let date):
            guard date > now else { return 0 }
            let (difference, overflows) = date.secondsSince1970.subtractingReportingOverflow(now.secondsSince1970)
            return overflows ? .max : difference
        }
    }
}
