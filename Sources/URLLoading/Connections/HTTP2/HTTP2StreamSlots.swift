// SPDX-License-Identifier: Apache-2.0

// The stream slots of a shared connection. The pool takes and counts slots without the connection's lock; the
// connection publishes its peer's limit here.

import Synchronization

final class HTTP2StreamSlots: Sendable {
    private let taken = Atomic<Int>(0)
    private let limit = Atomic<Int>(100)
    private let isOpen = Atomic<Bool>(true)
    private let opensTunnels = Atomic<Bool>(false)
    private let begun = Atomic<Int>(0)
    /// The slots added since the last report to the pool.
    private let added = Atomic<Int>(0)
    /// A change has not been reported to the pool yet.
    private let hasReport = Atomic<Bool>(false)

    /// Takes a stream slot, if one is free; `giveBack` returns it.
    func take() -> Bool {
        var count = taken.load(ordering: .relaxed)
        while isOpen.load(ordering: .acquiring), count < limit.load(ordering: .relaxed) {
            let (exchanged, seen) = taken.compareExchange(
                expected: count, desired: count + 1, ordering: .acquiringAndReleasing)
            if exchanged { return true }
            count = seen
        }
        return false
    }

    /// Returns a slot; true if it was the last one taken.
    func giveBack() -> Bool { taken.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 }

    /// The number of slots taken. Sequentially consistent with `isRetired`: of the last stream to leave and the caller
    /// of `retire`, at least one sees the other's change, and closes the connection.
    var count: Int { taken.load(ordering: .sequentiallyConsistent) }

    /// Whether the connection takes no more streams.
    var isRetired: Bool { !isOpen.load(ordering: .sequentiallyConsistent) }

    func retire() {
        if isOpen.exchange(false, ordering: .sequentiallyConsistent) { hasReport.store(true, ordering: .releasing) }
    }

    /// The peer's SETTINGS_MAX_CONCURRENT_STREAMS.
    func setLimit(_ count: Int) {
        let announced = max(0, min(count, 1 << 20))
        announcedLimit.store(announced, ordering: .relaxed)
        let new = min(announced, learnedLimit.load(ordering: .relaxed))
        let old = limit.exchange(new, ordering: .relaxed)
        guard new > old else { return }
        added.add(new - old, ordering: .relaxed)
        hasReport.store(true, ordering: .releasing)
    }
    private let announcedLimit = Atomic<Int>(100)

    // MARK: Servers that end a connection after some streams

    /// Limits the streams at a time, whatever the peer's SETTINGS say, because earlier connections to it have ended
    /// after so many, with others refused. Called before another task sees the connection.
    func limit(toLearned count: Int) {
        learnedLimit.store(max(1, count), ordering: .relaxed)
        limit.store(min(limit.load(ordering: .relaxed), max(1, count)), ordering: .relaxed)
    }
    private let learnedLimit = Atomic<Int>(.max)

    /// Notes that the peer has ended the connection after a stream, and refused later ones.
    func noteEnd(afterStream last: Int32) { lesson.store(max(1, (Int(last) + 1) / 2), ordering: .relaxed) }

    /// What the connection has shown since the last call; nil for nothing new.
    enum Lesson: Equatable {
        /// The peer has ended the connection after so many streams, and refused others.
        case endsAfter(Int)
        /// The peer takes more streams than were learned.
        case takesMore
    }

    func takeLesson() -> Lesson? {
        switch lesson.exchange(0, ordering: .relaxed) {
        case 0: nil
        case Self.takesMore: .takesMore
        case let count: .endsAfter(count)
        }
    }
    private let lesson = Atomic<Int>(0)
    private static let takesMore = -1

    func countStream() {
        let count = begun.add(1, ordering: .relaxed).newValue
        let learned = learnedLimit.load(ordering: .relaxed)
        if learned < .max, count > 2 * learned { liftLearnedLimit() }
    }

    private func liftLearnedLimit() {
        learnedLimit.store(.max, ordering: .relaxed)
        lesson.store(Self.takesMore, ordering: .relaxed)
        setLimit(announcedLimit.load(ordering: .relaxed))
        hasReport.store(true, ordering: .releasing)
    }

    /// Whether the peer's SETTINGS have arrived and allow extended CONNECT (RFC 8441 §3).
    var takesTunnels: Bool { opensTunnels.load(ordering: .acquiring) }
    func setTakesTunnels(_ takes: Bool) { opensTunnels.store(takes, ordering: .releasing) }

    /// The number of streams begun so far.
    var streamsBegun: Int { begun.load(ordering: .relaxed) }

    /// Returns the number of slots added since the last report; nil if there is nothing to report.
    func takeReport() -> Int? {
        guard hasReport.load(ordering: .relaxed), hasReport.exchange(false, ordering: .acquiringAndReleasing)
        else { return nil }
        return added.exchange(0, ordering: .relaxed)
    }
}
