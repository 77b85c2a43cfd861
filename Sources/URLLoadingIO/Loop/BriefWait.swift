// SPDX-License-Identifier: Apache-2.0

// Waits of some ten microseconds, in the thread of the waiting task.
//
// A wait through the polling thread takes two changes of threads, which cost as much as the rest of a small request. A
// peer on the same machine often answers sooner than that. So a task that waits alone, for a peer that has just
// answered within `BriefWait.longest`, asks the kernel itself for so long before it parks.
//
// Rule: meanwhile the socket's notifications are muted, or the polling thread would wake for each answer too. A task
// that parks on a muted slot turns them on again first; what came in between is then notified.

import Synchronization
import URLLoadingCSystem

/// What a slot knows of its socket's recent waits. Changed by the task that reads from the socket.
struct BriefWait: ~Copyable, Sendable {
    /// In nanoseconds: what two changes of threads take.
    static let longest: Int64 = 100_000
    /// Muting costs a system call, and so does its end: it takes a peer that answers quickly again and again.
    static let quickAnswersToMute = 3

    /// Negative if the slot has no socket.
    let descriptor = Atomic<Int32>(-1)
    let isMuted = Atomic<Bool>(false)
    /// The number of waits in succession that ended within `longest`.
    let quickAnswers = Atomic<Int>(0)

    /// Notes how long a wait took.
    func note(isQuick: Bool) {
        if isQuick { quickAnswers.add(1, ordering: .relaxed) } else { quickAnswers.store(0, ordering: .relaxed) }
    }

    func reset() {
        descriptor.store(-1, ordering: .relaxed)
        isMuted.store(false, ordering: .relaxed)
        quickAnswers.store(0, ordering: .relaxed)
    }
}

extension Poller {
    /// Waits in the caller's thread until the socket of `slot` is readable, for at most 100 µs. Returns false if the
    /// caller is to park: the socket is not readable, or a brief wait does not pay.
    ///
    /// No other task may wait on the slot meanwhile. With many tasks the thread has other work: `hasWaiters`,
    /// `hasFewSockets`.
    package func waitBriefly(_ slot: PollSlot) -> Bool {
        let quickAnswers = slot.brief.quickAnswers.load(ordering: .relaxed)
        let descriptor = slot.brief.descriptor.load(ordering: .relaxed)
        guard quickAnswers > 0, descriptor >= 0, !isCurrentThread else { return false }
        if slot.readable.take() || slot.mayHoldInput { return true }
        if quickAnswers >= BriefWait.quickAnswersToMute, !slot.brief.isMuted.exchange(true, ordering: .relaxed) {
            setInterests([], in: descriptor, slot)
        }
        let isReadable = csys_wait_readable(descriptor, BriefWait.longest) > 0
        slot.brief.note(isQuick: isReadable)
        return isReadable
    }

    /// Turns the notifications of a muted socket on again, before a task parks.
    @inline(__always)
    func watch(_ slot: PollSlot) {
        guard slot.brief.isMuted.load(ordering: .relaxed) else { return }
        slot.brief.isMuted.store(false, ordering: .relaxed)
        setInterests([.input, .output], in: slot.brief.descriptor.load(ordering: .relaxed), slot)
    }
}
