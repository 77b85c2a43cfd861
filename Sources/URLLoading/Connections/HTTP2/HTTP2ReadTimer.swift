// SPDX-License-Identifier: Apache-2.0

// While all loads are suspended or the connection is idle, no task reads. The poller's thread then reads once a second,
// without waiting, to answer a PING and notice a GOAWAY (RFC 9113 §6.7, §6.8).

import Synchronization
import URLLoadingIO

final class HTTP2ReadTimer: TimerTarget {
    /// Weak, as in `HTTP2SilenceTimer`.
    private weak let connection: HTTP2Connection?
    static let interval: Int64 = 1_000_000_000

    init(_ connection: HTTP2Connection) { self.connection = connection }

    func timerFired(now: Int64) { connection?.readTimerFired() }
}

extension HTTP2Connection {
    /// Limits the reads of one check, because the poller has other work.
    private static let maximumReads = 4

    func readTimerFired() {
        // A task that reads sets the timer again when it stops.
        if state.withLock({ $0.timerFired() }) { readAvailable() }
    }

    /// Reads the available input, unless a task is reading. Also called before the connection is reused.
    func readIfIdle() {
        if state.withLock({ $0.beginIdleRead() }) { readAvailable() }
    }

    private func readAvailable() {
        var reads = 0
        while reads < Self.maximumReads,
            incoming.mustRead || transport.hasPendingInput(askingKernel: clock.manual != nil), readOnce()
        { reads += 1 }
        if reads == Self.maximumReads { incoming.mustRead = true }
        flush()
        stopReading()
    }
}
