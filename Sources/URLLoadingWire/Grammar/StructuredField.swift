/// Structured fields (RFC 9651), as far as resumable uploads use them: integers, booleans, and
/// dictionaries of integers.
///
/// ```swift
/// StructuredField.integer("100")                              // Upload-Offset
/// StructuredField.boolean("?1")                               // Upload-Complete
/// StructuredField.integers("max-size=1000, max-age=3600")     // Upload-Limit
/// ```
///
/// A field out of grammar is `nil` as a whole, as RFC 9651 4.2 wants it. Parameters, and members of
/// types nobody here asks for, are checked and left out, so that what is added to a field later does
/// not make the rest of it unreadable.
package enum StructuredField {
    /// The largest integer there is, and the smallest below 0: 15 digits (RFC 9651 3.3.1).
    package static let largestInteger: Int64 = 999_999_999_999_999

    /// An item that is an integer.
    package static func integer(_ text: String) -> Int64? {
        if case .integer(let number) = item(text) { number } else { nil }
    }

    /// An item that is a boolean.
    package static func boolean(_ text: String) -> Bool? {
        if case .boolean(let flag) = item(text) { flag } else { nil }
    }

    /// The members of a dictionary that are integers. Of two with one key the last counts, whatever its
    /// type (RFC 9651 4.2.2). An empty field is an empty dictionary.
    package static func integers(_ text: String) -> [String: Int64]? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.dictionary() }?.compactMapValues {
            if case .integer(let number) = $0 { number } else { nil }
        }
    }

    /// The integer as it is sent; `nil` beyond ``largestInteger``.
    package static func text(_ number: Int64) -> String? {
        (-largestInteger...largestInteger).contains(number) ? "\(number)" : nil
    }

    /// The boolean as it is sent.
    package static func text(_ flag: Bool) -> String { flag ? "?1" : "?0" }

    private static func item(_ text: String) -> StructuredFieldScanner.Item? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.item() }
    }
}
