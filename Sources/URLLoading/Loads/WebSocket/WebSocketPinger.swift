// SPDX-License-Identifier: Apache-2.0

// Pings the server at intervals to check that it is alive. A pong follows what the server sent before it, so it is late
// by the server's fault only if all input was read and nothing has arrived since the ping.

import Synchronization
import URLLoadingIO

final class WebSocketPinger: TimerTarget {
    struct Ping: Sendable {
        let id: UInt64
        /// The number of bytes received before the ping.
        let received: Int64
    }

    private let load: WebSocketDriver
    /// The ping that must have been answered by now.
    private let last: Ping?
    init(_ load: WebSocketDriver, _ last: Ping?) { (self.load, self.last) = (load, last) }
    func timerFired(now: Int64) { load.pingAgain(last) }
}

extension WebSocketDriver {
    func beginPinging() { schedulePing(nil) }

    private func schedulePing(_ last: WebSocketPinger.Ping?) {
        guard let interval = options.pingInterval, state.withLock({ $0.outcome == nil }) else { return }
        clock.schedule(WebSocketPinger(self, last), at: clock.now() &+ LoadHandle.nanoseconds(interval))
    }

    fileprivate func pingAgain(_ last: WebSocketPinger.Ping?) {
        guard state.withLock({ $0.outcome == nil && $0.transport != nil }) else { return }
        // The answer may have arrived unread.
        let hasReadAll = readAvailable()
        let received = receivedCount.load(ordering: .relaxed)
        let isAlive = state.withLock { state in
            guard let last else { return true }
            let isLate = hasReadAll && state.mayRead && received == last.received
            guard state.control.answer(to: last.id) != nil || !isLate else { return false }
            state.control.forgetPing(last.id)
            return true
        }
        guard isAlive else {
            let error = failure(.pingTimeout, after: options.pingInterval)
            state.withLock { $0.fail(error) }
            return settle()
        }
        let next = state.withLock { $0.control.queuePing() }
        _ = pump()
        schedulePing(next.map { WebSocketPinger.Ping(id: $0, received: received) })
    }
}
