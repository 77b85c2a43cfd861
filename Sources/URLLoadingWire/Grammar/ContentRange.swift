// SPDX-License-Identifier: Apache-2.0

/// The part of a representation that a response carries, or a statement that the requested part does not exist (RFC
/// 9110 §14.4).
///
/// ```swift
/// ContentRange("bytes 0-9/100")   // .part(0..<10, of: 100)
/// ContentRange("bytes 0-9/*")     // .part(0..<10, of: nil)
/// ContentRange("bytes */100")     // .unsatisfied(length: 100)
/// ```
///
/// Strict, because a file assembled from wrong parts is damaged: a value that violates the grammar or is in another
/// unit is `nil`. So are two fields in one message, which ``Headers`` joins with a comma.
package enum ContentRange: Sendable, Hashable {
    /// A range of bytes, never empty, and the length of the whole representation if it is known.
    case part(Range<Int64>, of: Int64?)
    /// The representation's length; the requested range does not exist. Sent with 416.
    case unsatisfied(length: Int64)

    /// Parses a Content-Range field.
    package init?(_ text: String) {
        let unit = text.utf8.prefix { $0 != 0x20 }
        // RFC 9110 §14.1: units are case-insensitive.
        guard unit.elementsEqual("bytes".utf8, by: { $0.lowered == $1 }) else { return nil }
        let halves = text.utf8.dropFirst(unit.count + 1).split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let isLengthHidden = halves[1].elementsEqual("*".utf8)
        let length = Int64(strictDigits: halves[1])
        guard isLengthHidden || length != nil else { return nil }
        if halves[0].elementsEqual("*".utf8) {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
        } else {
            guard let range = Self.range(halves[0]), range.upperBound <= length ?? .max else { return nil }
            self = .part(range, of: length)
        }
    }

    /// Parses `first-last`, both inclusive. `Int64.max` as last byte is refused, because no end follows it.
    private static func range(_ text: Substring.UTF8View.SubSequence) -> Range<Int64>? {
        let ends = text.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(strictDigits: ends[0]), let last = Int64(strictDigits: ends[1]),
            first <= last, last < .max
        else { return nil }
        return first..<last + 1
    }
}

extension ContentRange: CustomStringConvertible {
    /// The value as sent. An empty range, which the parser never returns, is written as unsatisfied.
    package var description: String {
        switch self {
        case .part(let range, let length):
            let whole = length.map { "\($0)" } ?? "*"
            return range.isEmpty ? "bytes */\(whole)" : "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(whole)"
        case .unsatisfied(let length): return "bytes */\(length)"
        }
    }
}

extension Int64 {
    /// Parses `1*DIGIT` strictly: no sign, no blank, at most 63 bits.
    init?(strictDigits digits: some Collection<UInt8>) {
        guard !digits.isEmpty else { return nil }
        var number: Int64 = 0
        for digit in digits {
            guard digit.isDigit else { return nil }
            let (product, tooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = product.addingReportingOverflow(Int64(digit &- 0x30))
            guard !tooLarge, !overflows else { return nil }
            number = sum
        }
        self = number
    }
}
