// SPDX-License-Identifier: Apache-2.0

/// Structured fields (RFC 9651), as far as resumable uploads and digests use them: integers, booleans, and dictionaries
/// of integers or of byte sequences.
///
/// ```swift
/// StructuredField.integer("100")                              // Upload-Offset
/// StructuredField.boolean("?1")                               // Upload-Complete
/// StructuredField.integers("max-size=1000, max-age=3600")     // Upload-Limit
/// StructuredField.byteSequences("sha-256=:AAEC:")              // Repr-Digest
/// ```
///
/// A field that violates the grammar is `nil` as a whole (RFC 9651 §4.2). Parameters, and members of other types, are
/// checked and skipped, so that later additions to a field do not make the rest unreadable.
package enum StructuredField {
    /// The largest integer, and in absolute value the smallest: 15 digits (RFC 9651 §3.3.1).
    package static let largestInteger: Int64 = 999_999_999_999_999

    /// Parses an item that is an integer.
    package static func integer(_ text: String) -> Int64? {
        if case .integer(let number) = item(text) { number } else { nil }
    }

    /// Parses an item that is a boolean.
    package static func boolean(_ text: String) -> Bool? {
        if case .boolean(let flag) = item(text) { flag } else { nil }
    }

    /// Parses a dictionary and returns its integer members. The last of equal keys counts, whatever its type (RFC 9651
    /// §4.2.2). An empty field is an empty dictionary.
    package static func integers(_ text: String) -> [String: Int64]? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.dictionary() }?.compactMapValues {
            if case .integer(let number) = $0 { number } else { nil }
        }
    }

    /// Parses a dictionary and returns the members that are byte sequences, as ``integers(_:)`` does.
    package static func byteSequences(_ text: String) -> [String: [UInt8]]? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.dictionary() }?.compactMapValues {
            if case .bytes(let bytes) = $0 { bytes } else { nil }
        }
    }

    /// Returns a byte sequence as sent.
    package static func text(_ bytes: [UInt8]) -> String { ":\(Base64.encode(bytes)):" }

    /// Returns the integer as sent; `nil` beyond ``largestInteger``.
    package static func text(_ number: Int64) -> String? {
        (-largestInteger...largestInteger).contains(number) ? "\(number)" : nil
    }

    /// Returns the boolean as sent.
    package static func text(_ flag: Bool) -> String { flag ? "?1" : "?0" }

    private static func item(_ text: String) -> StructuredFieldScanner.Item? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.item() }
    }
}
