// SPDX-License-Identifier: Apache-2.0

// A growing file that is written in several ranges at once. Its size says nothing about its content, so a journal after
// the content states which bytes are written: it survives the death of the process, as the content does. What is on the
// disk, and would survive a loss of power, is stated by marks.

import Synchronization

/// A written range of a file, with a digest that verifies its content later.
package struct RangeMark: Sendable, Equatable, Codable {
    package let begin: Int64
    package let end: Int64
    /// SHA-256 of the last bytes before `end`, at most 64 KiB of the range, in hexadecimal.
    package let tail: String

    package init(begin: Int64, end: Int64, tail: String) {
        (self.begin, self.end, self.tail) = (begin, end, tail)
    }
}

extension FileWriter {
    /// Returns a mark of a range that was written. Blocks.
    package func mark(_ range: Range<Int64>) throws(IOFailure) -> RangeMark {
        let count = min(Int64(range.count), 64 * 1024)
        let tail = Digest.hex(try bytes(Int(count), at: range.upperBound - count))
        return RangeMark(begin: range.lowerBound, end: range.upperBound, tail: tail)
    }
}

package final class FileRanges: Sendable {
    private struct State: Sendable {
        var plan = SyncPlan()
        var marks: [RangeMark] = []
        var hasName = false
    }
    private let state = Lock(State())
    private let file: FileWriter
    private let length: Int64

    /// The greatest length of content behind which there is a place for the journal.
    package static let maximumLength: Int64 = 1 << 62

    /// - Parameter length: the length of the complete content, at most ``maximumLength``. The journal is behind it.
    package init(_ file: FileWriter, length: Int64) {
        (self.file, self.length) = (file, length)
    }

    /// The ranges that would survive a loss of power.
    package var marks: [RangeMark] { state.withLock { $0.marks } }

    /// Continues from the marks that an earlier writer of the file has left.
    package func resume(from marks: [RangeMark]) { state.withLock { $0.marks = marks } }

    /// Records which ranges are written. Every 64 MiB, and with the first bytes after 5 seconds, a separate thread
    /// synchronises the file; the writer never waits for that. Blocks while the journal is written.
    /// - Parameters:
    ///   - ranges: in order, without overlaps.
    ///   - now: monotonic nanoseconds.
    package func wrote(_ ranges: [Range<Int64>], now: Int64) throws(IOFailure) {
        try file.write(RangeJournal.encoded(ranges), at: RangeJournal.offset(length))
        let total = ranges.reduce(0) { $0 + Int64($1.count) }
        guard state.withLock({ $0.plan.wrote(upTo: total, now: now) }) else { return }
        BlockingThreads.synchronizing.run { [self] in synchronize(ranges) }
    }

    private func synchronize(_ ranges: [Range<Int64>]) {
        let marks = try? ranges.map { try file.mark($0) }
        let isDone = (try? file.synchronize()) != nil
        if isDone, !state.withLock({ $0.hasName }) { try? FileWriter.synchronizeFolder(of: file.path) }
        state.withLock { state in
            state.plan.synchronized(isDone: isDone)
            guard isDone else { return }
            state.hasName = true
            if let marks { state.marks = marks }
        }
    }

    /// Removes the journal: the content is complete, and the file has its length. Blocks.
    package func complete() throws(IOFailure) { try file.truncate(to: length) }

    /// Returns the ranges that the journal of a file states; `nil` without a valid one. Blocks.
    /// - Parameter length: the length of the complete content; `nil` if unknown. The journal is then in the last page.
    package static func journal(of file: FileWriter, length: Int64?) -> [Range<Int64>]? {
        guard length ?? 0 <= maximumLength else { return nil }
        let size = file.size
        let offset = length.map(RangeJournal.offset) ?? (size - 1) / RangeJournal.page * RangeJournal.page
        let count = min(size - offset, RangeJournal.page)
        guard count > 0, let bytes = try? file.bytes(Int(count), at: offset) else { return nil }
        return RangeJournal.ranges(bytes, length ?? offset)
    }
}

/// The form of the journal: a word, the number of ranges, their ends, and a checksum; each of 8 bytes, little-endian.
private enum RangeJournal {
    /// The journal is within one page of the page cache, whose change the end of the process does not interrupt.
    static let page: Int64 = 4096
    private static let word: UInt64 = 0x3153_474e_5255_4c55
    /// A journal of more ranges leaves out the last ones, which are then loaded again.
    private static let most = 250

    static func offset(_ length: Int64) -> Int64 { (length / page + (length % page).signum()) * page }

    static func encoded(_ ranges: [Range<Int64>]) -> [UInt8] {
        let ranges = ranges.prefix(most)
        var words = [word, UInt64(ranges.count)]
        for range in ranges { words += [UInt64(range.lowerBound), UInt64(range.upperBound)] }
        words.append(checksum(words))
        return words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) } }
    }

    static func ranges(_ bytes: [UInt8], _ length: Int64) -> [Range<Int64>]? {
        let words = stride(from: 0, to: bytes.count - 7, by: 8).map { start in
            (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[start + $1]) << (8 * UInt64($1)) }
        }
        guard words.count >= 3, words[0] == word, words[1] <= UInt64(most) else { return nil }
        let count = Int(words[1])
        guard words.count > 2 + 2 * count, checksum(words[..<(2 + 2 * count)]) == words[2 + 2 * count] else {
            return nil
        }
        var ranges: [Range<Int64>] = []
        for index in 0..<count {
            let (begin, end) = (Int64(clamping: words[2 + 2 * index]), Int64(clamping: words[3 + 2 * index]))
            guard begin < end, begin >= ranges.last?.upperBound ?? 0, end <= length else { return nil }
            ranges.append(begin..<end)
        }
        return ranges
    }

    /// FNV-1a over words: it finds a page that was not written as a whole, not a forgery.
    private static func checksum(_ words: some Sequence<UInt64>) -> UInt64 {
        words.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ $1) &* 0x100_0000_01b3 }
    }
}
