// SPDX-License-Identifier: Apache-2.0

// Probes of a silent connection: PING frames, and the acknowledgement of SETTINGS.

import URLLoadingWire

extension HTTP2State {
    /// The liveness of the peer (`HTTP2Probe`). Times are those of the coarse clock.
    struct Probing {
        var lastReceived: Int64
        var lastWritten: Int64
        /// The time of the PING that has not been answered.
        private(set) var pinged: Int64?
        /// The timer that checks for silence while streams are open is set.
        private var isWatching = false
        var areSettingsAcknowledged = false

        init(now: Int64) { (lastReceived, lastWritten) = (now, now) }

        mutating func beginWatching() -> Bool {
            defer { isWatching = true }
            return !isWatching
        }

        mutating func keepWatching(_ isNeeded: Bool) -> Int64? {
            isWatching = isNeeded
            return isNeeded ? lastReceived : nil
        }

        mutating func ping(now: Int64) { pinged = now }
        mutating func answered() { pinged = nil }
    }

    /// Queues a PING if nothing has arrived since a time and no PING is unanswered. Returns whether it did.
    mutating func ping(ifSilentSince moment: Int64, now: Int64) -> Bool {
        guard failure == nil, probing.pinged == nil, probing.lastReceived <= moment else { return false }
        probing.ping(now: now)
        codec.ping()
        writing.hasUnwritten = true
        return true
    }

    /// Handles the silence timer. Returns the time of the last input; nil if no further check is needed.
    mutating func keepWatching() -> Int64? { probing.keepWatching(failure == nil && !streams.isEmpty) }

    enum AnswerState {
        case answered
        /// The answer is not due before this time.
        case notBefore(Int64)
        /// The reader must read first, so that a busy machine is not mistaken for a dead path.
        case afterReader
        case late
    }

    /// Decides whether an answer is late.
    /// - Parameters:
    ///   - isPing: true for the answer to a PING, false for the acknowledgement of SETTINGS.
    ///   - hasReadSince: whether the reader has read since it was asked to; nil if it was not asked.
    mutating func check(isPing: Bool, hasReadSince: Bool?, now: Int64, timeout: Int64) -> AnswerState {
        guard failure == nil, let due = isPing ? pongDeadline(timeout) : settingsDeadline else { return .answered }
        guard now >= due else { return .notBefore(due) }
        return reading.isFree || hasReadSince == true ? .late : .afterReader
    }

    private var settingsDeadline: Int64? { probing.areSettingsAcknowledged ? nil : .min }

    private mutating func pongDeadline(_ timeout: Int64) -> Int64? {
        guard let sent = probing.pinged else { return nil }
        guard probing.lastReceived < sent else {
            probing.answered()
            return nil
        }
        // The PING is queued after frames that were written before, which may take long on a slow link.
        let isSending = streams.values.contains { $0.isTunnel ? codec.queued(on: $0.number) > 0 : !$0.hasSentAll }
        return max(sent, probing.lastWritten) + timeout * (isSending ? Self.sendingTimeoutFactor : 1)
    }
    private static let sendingTimeoutFactor: Int64 = 6
}
