// SPDX-License-Identifier: Apache-2.0

// The idle timer serves a WebSocket while no call waits for it and so no task reads it. At intervals, the poller's
// thread checks the socket without waiting: it answers pings and close frames, and sends bytes that the kernel did not
// take at once. It costs no task and no buffer per socket.

import Synchronization
import URLLoadingIO

final class WebSocketIdleTimer: TimerTarget {
    private let load: WebSocketDriver
    private let due: Int64
    init(_ load: WebSocketDriver, at due: Int64) { (self.load, self.due) = (load, due) }
    func timerFired(now: Int64) { load.keep(due) }
}

extension WebSocketDriver {
    static let idleInterval: Int64 = 1_000_000_000
    /// The interval in nanoseconds while bytes are to be sent, or the peer is about to close.
    static let soon: Int64 = 20_000_000
    /// The maximum number of reads per check, and of bytes per read, because the poller has other work.
    private static let maximumReads = 4
    private static let readSize = 16 * 1024

    /// Sets the idle timer, unless it is set for an earlier time or a call reads.
    /// - Parameter hasLeftover: bytes wait to be written, so the timer is set even while a call reads.
    func keep(within interval: Int64, hasLeftover: Bool = false) {
        let now = clock.coarseNow()
        let due = state.withLock { state -> Int64? in
            let due = now &+ (state.lingersUntil == nil ? interval : min(interval, Self.soon))
            return state.setIdleTimer(at: due, hasLeftover: hasLeftover) ? due : nil
        }
        if let due { clock.schedule(WebSocketIdleTimer(self, at: due), at: due) }
    }

    /// Called on the poller's thread.
    /// - Parameter due: when the timer was to fire; one that an earlier one has replaced does nothing.
    fileprivate func keep(_ due: Int64) {
        guard state.withLock({ $0.idleTimerFired(due) }) else { return }
        readAvailable()
        // If bytes are left over, `pump` sets the timer again.
        _ = pump()
        keep(within: Self.idleInterval)
    }

    /// Reads what has arrived, unless a call reads.
    /// - Returns: false if input was left, because messages wait for a receiver or because there is much of it.
    @discardableResult
    func readAvailable() -> Bool {
        guard let transport = state.withLock({ $0.beginReading() }) else { return true }
        let hasReadAll = readAvailable(transport)
        state.withLock { $0.endReading() }
        settle()
        return hasReadAll
    }

    private func readAvailable(_ transport: any Transport) -> Bool {
        let lingersUntil = state.withLock { $0.lingersUntil }
        if let lingersUntil, isPastCloseDeadline(transport, lingersUntil) {
            lost(nil)
            return true
        }
        let isLingering = lingersUntil != nil
        // While a large message waits for its receiver, the rest of it stays in the kernel.
        guard isLingering || (input?.held ?? 0) <= options.readAhead else { return false }
        guard isLingering || input?.mayHoldMore == true || transport.hasPendingInput(askingKernel: clock.manual != nil)
        else { return true }
        for _ in 0..<Self.maximumReads {
            guard isLingering || ((input?.held ?? 0) <= options.readAhead && state.withLock { $0.mayRead }) else {
                break
            }
            if case .blocked = read(from: transport, atMost: Self.readSize, reads: Self.maximumReads) { return true }
        }
        input?.leave()
        return false
    }
}
