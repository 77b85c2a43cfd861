// SPDX-License-Identifier: Apache-2.0

// Decides when the data of a fast body gathers before its reader is woken.
//
// Waking a task for each arrival of some ten KB costs more than reading them. The kernel gathers without a clock, by
// the low-water mark of the socket, if the length of the body is known: it wakes the reader for the last bytes too. A
// mark holds back less data than it for as long as the peer pauses, so a reader that waits with a mark reads again
// after `maximumWait`, and a short read removes the mark. For other bodies the reader naps, or the poller (`PollSlot`).

/// A value: it counts reads and waits, and returns how the socket and the poller are to be set.
struct ReceiveGathering {
    /// A first read of this many bytes after a wait means that data arrives faster than the task is woken.
    static let flood = 48 * 1024
    /// The highest mark: as much as one read takes. Half of it costs a fifth more CPU.
    static let highestMark = 512 * 1024
    /// The longest wait with a mark, in nanoseconds.
    static let maximumWait: Int64 = 20_000_000

    /// The low-water mark of the socket, in bytes; 1 for none.
    private(set) var mark = 1
    /// Whether the poller naps while the data of this body gathers.
    private(set) var naps = false
    /// The first read after a wait tells how fast data arrives; those after it find what came meanwhile.
    private var hasWaited = true
    private var isFlood = false
    private var canMark = true
    /// The next time at which the reader reads although it was not woken; a timer for it has been set.
    private var nextRead = Int64.min

    /// - Parameters:
    ///   - count: the bytes read; 0 if there were none.
    ///   - left: the bytes of the body that are still to be read; nil if unknown, or outside of a body.
    ///   - now: the time of the timers, in nanoseconds: a coarser clock may still show a time before a timer that has
    ///     fired, and no further one would be set.
    mutating func read(_ count: Int, left: Int64?, now: @autoclosure () -> Int64) {
        if count >= Self.flood {
            isFlood = true
        } else if hasWaited, mark == 1 || now() >= nextRead {
            // Before that time, a wake-up with little data is one that came late: its data was read before.
            isFlood = false
        }
        hasWaited = false
        let marks = isFlood && canMark && left != nil
        mark = marks ? Int(max(1, min(left ?? 1, Int64(Self.highestMark)))) : 1
        naps = isFlood && !marks
    }

    /// The reader found nothing, and waits. Returns the moment at which a timer must wake it; nil for none.
    mutating func wait(now: @autoclosure () -> Int64) -> Int64? {
        hasWaited = true
        guard mark > 1 else { return nil }
        let now = now()
        guard now >= nextRead else { return nil }
        nextRead = now + Self.maximumWait
        return nextRead
    }

    /// The reader found nothing, and may nap in its own thread before it waits. Returns whether that is worth it.
    mutating func nap() -> Bool {
        guard naps else { return false }
        hasWaited = true
        return true
    }

    /// The transport cannot set a mark.
    mutating func refuseMark() {
        (canMark, mark, naps) = (false, 1, isFlood)
    }

    /// The body has ended, or is not read any further.
    mutating func end() {
        (mark, naps, isFlood, hasWaited) = (1, false, false, true)
    }
}
