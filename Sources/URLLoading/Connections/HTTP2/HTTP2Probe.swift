// A path may die without a word, and TCP would take minutes to say so. A connection that nothing was heard from for long
// is asked with a PING (RFC 9113 6.7): when it is used again after a rest, and while streams are open. If nothing at all
// is heard for some seconds more, it is given up, and what may be sent twice goes out again on another.

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Looks now and then while streams are open. One for each connection, that sets itself again.
final class HTTP2Watch: TimerTarget {
    private let connection: HTTP2Connection
    init(_ connection: HTTP2Connection) { self.connection = connection }
    func timerFired(now: Int64) { connection.watch(self, now) }
}

/// When the peer must have answered.
final class HTTP2Verdict: TimerTarget, @unchecked Sendable {
    enum Question { case ping, settings }

    private let connection: HTTP2Connection
    let question: Question
    /// How often the reader had looked when he was asked to: a machine that is busy is not to be taken for a dead path.
    var asked: Int?
    static let grace: Int64 = 1_000_000_000

    init(_ connection: HTTP2Connection, _ question: Question) { (self.connection, self.question) = (connection, question) }

    func timerFired(now: Int64) { connection.judge(self, now) }
}

extension HTTP2Connection {
    /// Called by who has just got a place on it.
    func probeIfRestedLong() {
        guard let interval = probeInterval else { return }
        let now = clock.coarseNow()
        probe(ifSilentSince: now - interval, now)
    }

    /// One question at a time, whoever asks.
    private func probe(ifSilentSince moment: Int64, _ now: Int64) {
        let isSilent = lock.withLock { _ in
            guard failure == nil, probed == nil, lastHeard <= moment else { return false }
            probed = now
            codec.ping()
            hasUnwritten = true
            return true
        }
        if isSilent { clock.schedule(HTTP2Verdict(self, .ping), at: now + probeTimeout) }
    }

    /// A stream has begun. Returns whether nobody watches yet. Under the lock.
    func beginsWatch() -> Bool {
        guard !isWatched, probeInterval != nil else { return false }
        isWatched = true
        return true
    }

    func scheduleWatch() {
        if let interval = probeInterval { clock.schedule(HTTP2Watch(self), at: clock.coarseNow() + interval) }
    }

    func watch(_ watch: HTTP2Watch, _ now: Int64) {
        guard let interval = probeInterval else { return }
        // It may lie unread: nobody reads while all are suspended.
        lookIfIdle()
        let heard: Int64? = lock.withLock { _ in
            isWatched = failure == nil && !streams.isEmpty
            return isWatched ? lastHeard : nil
        }
        guard let heard else { return }
        guard now - heard >= interval else { return clock.schedule(watch, at: heard + interval) }
        probe(ifSilentSince: now - interval, now)
        nudge()
        clock.schedule(watch, at: now + interval)
    }

    /// RFC 9113 6.5.3 leaves it to us how long an acknowledgement may take: twice as long as an answer to a PING, for a
    /// server that is only getting started.
    func awaitSettings() {
        guard probeInterval != nil else { return }
        clock.schedule(HTTP2Verdict(self, .settings), at: clock.coarseNow() + probeTimeout * 2)
    }

    func judge(_ verdict: HTTP2Verdict, _ now: Int64) {
        lookIfIdle()
        var isLate = false
        let next: Int64? = lock.withLock { _ in
            guard failure == nil, let since = openQuestion(verdict.question) else { return nil }
            guard now >= since else { return since }
            guard isLed else {
                isLate = true
                return nil
            }
            let looked = looks.load(ordering: .relaxed)
            if let asked = verdict.asked, asked != looked {
                isLate = true
                return nil
            }
            verdict.asked = looked
            return now + HTTP2Verdict.grace
        }
        if let next {
            // What has come is heard before anything is decided.
            if verdict.asked != nil { transport.slot.wake() }
            clock.schedule(verdict, at: next)
        }
        guard isLate else { return }
        switch verdict.question {
        case .ping: fail(.unanswered)
        case .settings:
            lock.withLock { _ in codec.goAway(.settingsTimeout) }
            fail(.wire(WireViolation(.remote, .http2Violation, section: "RFC 9113 6.5.3, SETTINGS_TIMEOUT")))
            flush()
        }
    }

    /// When the answer is due; `nil` if it has come. Under the lock.
    private func openQuestion(_ question: HTTP2Verdict.Question) -> Int64? {
        switch question {
        case .settings: return areSettingsAcknowledged ? nil : .min
        case .ping:
            guard let sent = probed else { return nil }
            guard lastHeard < sent else {
                probed = nil
                return nil
            }
            // The PING waits behind what went out before it, and that behind a slow line.
            let isSending = streams.values.contains { $0.isTunnel ? codec.queued(on: $0.number) > 0 : !$0.hasSentAll }
            return max(sent, lastWritten) + probeTimeout * (isSending ? Self.patienceWhileSending : 1)
        }
    }
    private static let patienceWhileSending: Int64 = 6
}
