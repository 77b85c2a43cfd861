// SPDX-License-Identifier: Apache-2.0

// In this folder: a download whose file is written in several ranges at once

// Divides the bytes of a file among requests. Pure: neither requests nor files nor clocks. Every byte is in one place:
// held, in one part, or in a gap that waits for a request. So no byte is written by two parts, whatever their order.

struct RangePlan: Sendable {
    /// The bytes that one request is to bring.
    struct Part: Sendable, Equatable {
        let id: Int
        let begin: Int64
        /// The bytes before this offset are written.
        fileprivate(set) var written: Int64
        /// The bytes before this offset are written, or being written.
        fileprivate(set) var claimed: Int64
        /// The bytes from this offset on belong to others. Moves back when the part is split.
        fileprivate(set) var end: Int64
        /// The end of the response's range; `nil` until a response has confirmed the part.
        fileprivate(set) var reach: Int64?
        /// The time of its last progress.
        fileprivate(set) var moved: Int64

        var range: Range<Int64> { begin..<end }
        /// True if the response, if it delivers more, delivers bytes of others.
        var isCut: Bool { reach.map { end < $0 } ?? false }
    }

    let length: Int64
    /// No part is split into parts of fewer bytes than this.
    let least: Int64
    /// The size of a part of what is missing.
    let share: Int64
    /// The bytes of parts that have ended.
    private var held: ByteRanges
    private(set) var parts: [Part] = []
    private var lastID = 0

    /// - Parameters:
    ///   - held: the bytes that the file has.
    ///   - count: the number of parts, at least 1.
    init(length: Int64, held: ByteRanges = ByteRanges(), count: Int, least: Int64) {
        (self.length, self.held, self.least) = (length, held, max(1, least))
        let (missing, count) = (length - held.total, Int64(max(1, count)))
        share = max(self.least, missing / count + (missing % count).signum())
    }

    /// The bytes that are written.
    var written: ByteRanges {
        var written = held
        for part in parts { written.insert(part.begin..<part.written) }
        return written
    }
    var isComplete: Bool { held.total == length }

    private var taken: ByteRanges {
        var taken = held
        for part in parts { taken.insert(part.range) }
        return taken
    }

    // MARK: Handing out

    /// Begins the part of a response that is there already.
    /// - Parameter offset: the first byte of the response, which reaches to the end of the file.
    /// - Returns: `nil` if its first byte is not missing.
    mutating func first(at offset: Int64, now: Int64) -> Part? {
        guard let gap = taken.gap(before: length, from: offset), gap.lowerBound == offset else { return nil }
        return begin(piece(of: gap), reach: length, now)
    }

    /// Begins the part of another request: a gap, or the second half of the largest part. `nil` if there is nothing to
    /// divide.
    mutating func next(now: Int64) -> Part? {
        if let gap = taken.gap(before: length) { return begin(piece(of: gap), reach: nil, now) }
        guard let index = parts.indices.max(by: { parts[$0].missing < parts[$1].missing }),
            parts[index].missing / 2 >= least
        else { return nil }
        let (middle, end) = (parts[index].end - parts[index].missing / 2, parts[index].end)
        parts[index].end = middle
        return begin(middle..<end, reach: nil, now)
    }

    private func piece(of gap: Range<Int64>) -> Range<Int64> {
        Int64(gap.count) - share < least ? gap : gap.lowerBound..<gap.lowerBound + share
    }

    private mutating func begin(_ range: Range<Int64>, reach: Int64?, _ now: Int64) -> Part {
        lastID += 1
        let part = Part(
            id: lastID, begin: range.lowerBound, written: range.lowerBound, claimed: range.lowerBound,
            end: range.upperBound, reach: reach, moved: now)
        parts.append(part)
        return part
    }

    // MARK: A part

    private func index(_ id: Int) -> Int? { parts.firstIndex { $0.id == id } }
    func part(_ id: Int) -> Part? { index(id).map { parts[$0] } }

    /// Notes the response to a part's request. Returns false if another part has taken over its bytes meanwhile.
    mutating func confirm(_ id: Int, reach: Int64, now: Int64) -> Bool {
        guard let index = index(id) else { return false }
        (parts[index].reach, parts[index].moved) = (reach, now)
        return true
    }

    /// Claims the next bytes of a part, before they are written. Returns fewer than `count` at the end of the part.
    mutating func claim(_ id: Int, _ count: Int) -> Range<Int64> {
        guard let index = index(id) else { return 0..<0 }
        let start = parts[index].claimed
        let end = start + min(Int64(count), parts[index].missing)
        parts[index].claimed = end
        return start..<end
    }

    /// Notes that the bytes before `end` of a part are written.
    mutating func wrote(_ id: Int, upTo end: Int64, now: Int64) {
        guard let index = index(id) else { return }
        (parts[index].written, parts[index].moved) = (min(end, parts[index].claimed), now)
    }

    /// Merges what follows a part into it, if its response delivers that and no other response does: a gap, or a part
    /// that waits for its response. A server without ranges is so read to the end over one connection.
    /// - Returns: whether the part has grown.
    mutating func extend(_ id: Int) -> Bool {
        guard let index = index(id), let reach = parts[index].reach, parts[index].end < reach else { return false }
        let end = parts[index].end
        if let other = parts.firstIndex(where: { $0.begin == end && $0.reach == nil }) {
            guard parts[other].end <= reach else { return false }
            parts[index].end = parts[other].end
            parts.remove(at: other)
            return true
        }
        guard let gap = taken.gap(before: length, from: end), gap.lowerBound == end else { return false }
        parts[index].end = min(gap.upperBound, reach)
        return true
    }

    /// Ends a part. What it has not written becomes a gap.
    mutating func leave(_ id: Int) {
        guard let index = index(id) else { return }
        let part = parts.remove(at: index)
        held.insert(part.begin..<part.written)
    }

    /// Returns the part whose peer has been silent for the longest time. Time in which a part does not wait for its
    /// peer does not count.
    /// - Parameter isWaiting: whether the part with an ID waits for its peer.
    mutating func slowest(now: Int64, where isWaiting: (Int) -> Bool) -> Part? {
        var slowest: Part?
        for index in parts.indices where parts[index].missing > 0 {
            guard isWaiting(parts[index].id) else {
                parts[index].moved = now
                continue
            }
            if parts[index].moved < slowest?.moved ?? .max { slowest = parts[index] }
        }
        return slowest
    }
}

extension RangePlan.Part {
    /// The number of bytes that are not even being written.
    var missing: Int64 { end - claimed }
}
