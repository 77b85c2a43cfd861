// A connection that rested for long may lead nowhere, and TCP would take minutes to say so. Its next request goes out
// with a PING (RFC 9113 6.7); if nothing at all is heard for some seconds, it is given up, and what may be sent twice
// goes out again on another.

import Synchronization
import URLLoadingIO

final class HTTP2Probe: TimerTarget {
    private let connection: HTTP2Connection
    private let start: Int64
    /// What has rested for less is believed to be there: many middleboxes forget after 30 seconds or more.
    static let rest: Int64 = 15_000_000_000
    static let patience: Int64 = 5_000_000_000

    init(_ connection: HTTP2Connection, since start: Int64) { (self.connection, self.start) = (connection, start) }

    func timerFired(now: Int64) { connection.judge(since: start) }
}

extension HTTP2Connection {
    /// Called by who has just got a place on it.
    func probeIfRestedLong() {
        let now = clock.coarseNow()
        let isSilent = lock.withLock { _ in
            guard failure == nil, now - lastHeard > HTTP2Probe.rest else { return false }
            codec.ping()
            hasUnwritten = true
            return true
        }
        if isSilent { clock.schedule(HTTP2Probe(self, since: now), at: now + HTTP2Probe.patience) }
    }

    func judge(since start: Int64) {
        // It may lie unread: nobody reads while all are suspended.
        lookIfIdle()
        if lock.withLock({ _ in failure == nil && lastHeard < start }) { fail(.closed) }
    }
}
