// SPDX-License-Identifier: Apache-2.0

/// Structured fields (RFC 9651): the items and dictionaries of resumable uploads and digests as values of Swift, and
/// the dictionaries of signatures as they are (``dictionary(_:)``).
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
        if case .integer(let number) = item(text)?.value { number } else { nil }
    }

    /// Parses an item that is a boolean.
    package static func boolean(_ text: String) -> Bool? {
        if case .boolean(let flag) = item(text)?.value { flag } else { nil }
    }

    /// Parses a dictionary and returns its integer members. The last of equal keys counts, whatever its type (RFC 9651
    /// §4.2.2). An empty field is an empty dictionary.
    package static func integers(_ text: String) -> [String: Int64]? {
        items(text)?.compactMapValues { if case .integer(let number) = $0 { number } else { nil } }
    }

    /// Parses a dictionary and returns the members that are byte sequences, as ``integers(_:)`` does.
    package static func byteSequences(_ text: String) -> [String: [UInt8]]? {
        items(text)?.compactMapValues { if case .bytes(let bytes) = $0 { bytes } else { nil } }
    }

    /// Returns a byte sequence as sent.
    package static func text(_ bytes: [UInt8]) -> String { ":\(Base64.encode(bytes)):" }

    /// Returns the integer as sent; `nil` beyond ``largestInteger``.
    package static func text(_ number: Int64) -> String? {
        (-largestInteger...largestInteger).contains(number) ? "\(number)" : nil
    }

    /// Returns the boolean as sent.
    package static func text(_ flag: Bool) -> String { flag ? "?1" : "?0" }

    /// Parses a dictionary and returns the members that are items, without their parameters.
    private static func items(_ text: String) -> [String: BareItem]? {
        guard let entries = dictionary(text) else { return nil }
        var items: [String: BareItem] = [:]
        for entry in entries { if case .item(let item) = entry.member { items[entry.key] = item.value } }
        return items
    }

    private static func item(_ text: String) -> Item? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.item() }
    }
}
