// SPDX-License-Identifier: Apache-2.0

/// A set of bytes of a file: ranges in order that neither overlap nor touch.
struct ByteRanges: Sendable, Equatable {
    private(set) var ranges: [Range<Int64>] = []

    init() {}
    init(upTo end: Int64) { insert(0..<end) }
    init(_ ranges: [Range<Int64>]) { for range in ranges { insert(range) } }

    /// The number of bytes.
    var total: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }
    /// The length of the range at the beginning of the file; 0 without one.
    var prefix: Int64 { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } ?? 0 }
    /// True if the bytes are the beginning of the file, or none.
    var isPrefix: Bool { total == prefix }

    mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let touched = ranges.filter { $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound }
        let begin = min(range.lowerBound, touched.first?.lowerBound ?? .max)
        let end = max(range.upperBound, touched.last?.upperBound ?? 0)
        let place = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.count
        ranges.replaceSubrange(place..<place + touched.count, with: [begin..<end])
    }

    /// Returns the first range of at least one byte before `length` that is not in the set; `nil` without one.
    /// - Parameter begin: the first byte that may be in it.
    func gap(before length: Int64, from begin: Int64 = 0) -> Range<Int64>? {
        var start = begin
        for range in ranges where range.upperBound > start {
            if range.lowerBound > start { return start..<min(range.lowerBound, length) }
            start = range.upperBound
        }
        return start < length ? start..<length : nil
    }
}
