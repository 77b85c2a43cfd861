// Dead paths. A path may die silently, and TCP would take minutes to notice. A connection over which nothing has arrived
// for long is sent a PING (RFC 9113 §6.7): when it is used again after a rest, and while streams are open. If nothing at
// all arrives for some seconds more, the connection fails, and requests that may be sent twice go out on another.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Looks for silence while streams are open. One for each connection, which sets itself again.
final class HTTP2SilenceTimer: TimerTarget {
    private let connection: HTTP2Connection
    init(_ connection: HTTP2Connection) { self.connection = connection }
    func timerFired(now: Int64) { connection.watch(self, now) }
}

/// Fires when the peer must have answered. Unchecked: used by the poller's thread alone.
final class HTTP2AnswerTimer: TimerTarget, @unchecked Sendable {
    enum Question { case ping, settings }

    private let connection: HTTP2Connection
    let question: Question
    /// `HTTP2Connection.looks` when the reader was asked to look; nil before.
    var looksWhenAsked: Int?
    static let grace: Int64 = 1_000_000_000

    init(_ connection: HTTP2Connection, _ question: Question) {
        (self.connection, self.question) = (connection, question)
    }

    func timerFired(now: Int64) { connection.judge(self, now) }
}

extension HTTP2Connection {
    /// Called by a load that has just taken a place.
    func probeIfRestedLong() {
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
        // Bytes may lie unread: no task reads while all loads are suspended.
        lookIfIdle()
        guard let received = state.withLock({ $0.keepWatching() }) else { return }
        guard now - received >= interval else { return clock.schedule(timer, at: received + interval) }
        probe(ifSilentSince: now - interval, now)
        nudge()
        clock.schedule(timer, at: now + interval)
    }

    /// RFC 9113 §6.5.3 does not say how long an acknowledgement may take: here twice as long as an answer to a PING, for
    /// a server that is still starting.
    func awaitSettings() {
        guard http2PingInterval != nil else { return }
        clock.schedule(HTTP2AnswerTimer(self, .settings), at: clock.coarseNow() + http2PingTimeout * 2)
    }

    func judge(_ timer: HTTP2AnswerTimer, _ now: Int64) {
        lookIfIdle()
        let (looked, isPing, timeout) = (looks.load(ordering: .relaxed), timer.question == .ping, http2PingTimeout)
        let hasLooked = timer.looksWhenAsked.map { $0 != looked }
        switch state.withLock({ $0.judge(isPing: isPing, hasLooked: hasLooked, now: now, timeout: timeout) }) {
        case .answered: break
        case .notBefore(let moment): clock.schedule(timer, at: moment)
        case .afterReader:
            timer.looksWhenAsked = looked
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
