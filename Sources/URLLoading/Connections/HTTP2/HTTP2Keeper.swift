// While nobody waits for a stream nobody reads: loads that are held up, connections that rest. Once a second the
// poller's thread looks, without waiting, so that a PING is answered and a GOAWAY heard (RFC 9113 6.7, 6.8).

import Synchronization
import URLLoadingIO

final class HTTP2Keeper: TimerTarget {
    private let connection: HTTP2Connection
    static let interval: Int64 = 1_000_000_000

    init(_ connection: HTTP2Connection) { self.connection = connection }

    func timerFired(now: Int64) { connection.keep() }
}

extension HTTP2Connection {
    /// At most so many reads in one look: the poller has other work.
    private static let looks = 4

    func keep() {
        let isOurs = lock.withLock { _ in
            isKeeping = false
            guard !isLed, failure == nil else { return false }
            isLed = true
            return true
        }
        // Who reads now leaves a keeper behind when he stops.
        if isOurs { look() }
    }

    /// Reads what is there if nobody does. Before it is used again a connection is looked at like this as well.
    func lookIfIdle() {
        let isOurs = lock.withLock { _ in
            guard !isLed, failure == nil else { return false }
            isLed = true
            return true
        }
        if isOurs { look() }
    }

    private func look() {
        var looks = 0
        while looks < Self.looks, mustRead || transport.hasPendingInput(askingKernel: clock.manual != nil), readOnce() { looks += 1 }
        if looks == Self.looks { mustRead = true }
        flush()
        stopLeading()
    }
}
