// SPDX-License-Identifier: Apache-2.0

// Detects dead network paths, which TCP would take minutes to notice. A connection that has received nothing for a time
// is sent a PING (RFC 9113 §6.7), when it is reused after being idle and while streams are open. If nothing arrives
// within the timeout, the connection fails, and requests that may be repeated are retried on another.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Checks for silence while streams are open. One for each connection, which reschedules itself.
final class HTTP2SilenceTimer: TimerTarget {
    /// Weak: a timer must not keep a connection that is closed long before it fires.
    private weak let connection: HTTP2Connection?
    init(_ connection: HTTP2Connection) { self.connection = connection }
    func timerFired(now: Int64) { connection?.watch(self, now) }
}

/// Fires when the peer's answer is due.
final class HTTP2AnswerTimer: TimerTarget {
    enum Question { case ping, settings }

    private weak let connection: HTTP2Connection?
    let question: Question
    /// The value of `HTTP2Connection.emptyReads` when the reader was asked to read; -1 before.
    let readsWhenAsked = Atomic<Int>(-1)
    static let grace: Int64 = 1_000_000_000

    init(_ connection: HTTP2Connection, _ question: Question) {
        (self.connection, self.question) = (connection, question)
    }

    func timerFired(now: Int64) { connection?.check(self, now) }
}

extension HTTP2Connection {
    /// Called by a load that has just taken a slot.
    func probeIfIdleLong() {
        guard let interval = http2PingInterval else { return }
        let now = clock.coarseNow()
        probe(ifSilentSince: now - interval, now)
    }

    private func probe(ifSilentSince moment: Int64, _ now: Int64) {
        guard state.withLock({ $0.ping(ifSilentSince: moment, now: now) }) else { return }
        clock.schedule(HTTP2AnswerTimer(self, .ping), at: now + http2PingTimeout)
    }

    func scheduleWatch() {
        if let interval = http2PingInterval {
            clock.schedule(HTTP2SilenceTimer(self), at: clock.coarseNow() + interval)
        }
    }

    func watch(_ timer: HTTP2SilenceTimer, _ now: Int64) {
        guard let interval = http2PingInterval else { return }
        // Input may be unread, because no task reads while all loads are suspended.
        readIfIdle()
        guard let received = state.withLock({ $0.keepWatching() }) else { return }
        guard now - received >= interval else { return clock.schedule(timer, at: received + interval) }
        probe(ifSilentSince: now - interval, now)
        flushIfNeeded()
        clock.schedule(timer, at: now + interval)
    }

    /// RFC 9113 §6.5.3 sets no time for the acknowledgement of SETTINGS: twice the PING timeout, for a server that is
    /// still starting.
    func awaitSettings() {
        guard http2PingInterval != nil else { return }
        clock.schedule(HTTP2AnswerTimer(self, .settings), at: clock.coarseNow() + http2PingTimeout * 2)
    }

    func check(_ timer: HTTP2AnswerTimer, _ now: Int64) {
        readIfIdle()
        let (reads, isPing, timeout) = (emptyReads.load(ordering: .relaxed), timer.question == .ping, http2PingTimeout)
        let asked = timer.readsWhenAsked.load(ordering: .relaxed)
        let hasReadSince = asked < 0 ? nil : asked != reads
        switch state.withLock({ $0.check(isPing: isPing, hasReadSince: hasReadSince, now: now, timeout: timeout) }) {
        case .answered: break
        case .notBefore(let moment): clock.schedule(timer, at: moment)
        case .afterReader:
            timer.readsWhenAsked.store(reads, ordering: .relaxed)
            transport.slot.wake()
            clock.schedule(timer, at: now + HTTP2AnswerTimer.grace)
        case .late where isPing: fail(.unanswered)
        case .late:
            state.withLock { $0.codec.goAway(.settingsTimeout) }
            fail(.wire(WireViolation(.remote, .http2Violation, section: "RFC 9113 6.5.3, SETTINGS_TIMEOUT")))
            flush()
        }
    }
}
