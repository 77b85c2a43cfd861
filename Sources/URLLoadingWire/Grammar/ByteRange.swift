// SPDX-License-Identifier: Apache-2.0

/// One byte range of a request (RFC 9110 §14.1.2).
package enum ByteRange: Sendable, Hashable {
    case from(Int64)
    case span(Int64, Int64)
    /// The last bytes, by their number.
    case last(Int64)

    /// Parses a Range field; `nil` if it is invalid or in another unit, in which case it is ignored (§14.2).
    /// - Parameter most: limit of the list's length; a longer list is ignored too, because it may be meant to overload
    ///   the server.
    package static func parse(_ text: String, most: Int = 16) -> [ByteRange]? {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, halves[0].lowercased() == "bytes" else { return nil }
        let parts = halves[1].split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }.filter { !$0.isEmpty }
        guard !parts.isEmpty, parts.count <= most else { return nil }
        var ranges: [ByteRange] = []
        for part in parts {
            guard let range = ByteRange(part) else { return nil }
            ranges.append(range)
        }
        return ranges
    }

    private init?(_ text: String) {
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        switch (Self.number(ends[0]), Self.number(ends[1])) {
        case (let first?, let last?) where first <= last: self = .span(first, last)
        case (let first?, nil) where ends[1].isEmpty: self = .from(first)
        case (nil, let count?) where ends[0].isEmpty: self = .last(count)
        default: return nil
        }
    }

    /// Parses digits only; a number too large to represent becomes the largest one.
    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text) ?? .max
    }

    /// Returns the range for a representation of the given length; `nil` if there is no such part (§14.1.2).
    package func resolved(for length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first): first < length ? first..<length : nil
        case .span(let first, let last): first < length ? first..<min(last, length - 1) + 1 : nil
        case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }
}
