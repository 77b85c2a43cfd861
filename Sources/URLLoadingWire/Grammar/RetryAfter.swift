// SPDX-License-Identifier: Apache-2.0

/// The time to wait before a retry: a delay or a date (RFC 9110 §10.2.3).
///
/// ```swift
/// RetryAfter("120")?.seconds(after: now)                             // 120
/// RetryAfter("Fri, 31 Dec 1999 23:59:59 GMT")?.seconds(after: now)   // 0
/// ```
///
/// This is the server's value; the caller that waits decides how far to respect it.
package enum RetryAfter: Sendable, Hashable {
    /// Seconds from the receipt of the response; `Int64.max` if the number is too large to represent.
    case delay(Int64)
    /// The earliest time for a retry.
    case date(HTTPDate)

    /// Parses a Retry-After field; `nil` if it violates the grammar, which allows no sign or fraction.
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

    /// Returns how long to wait from `now` on, in seconds; 0 for a date in the past.
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
