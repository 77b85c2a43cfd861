// SPDX-License-Identifier: Apache-2.0

// Pings the server at intervals to check that it is alive.

import Synchronization
import URLLoadingIO

final class WebSocketPinger: TimerTarget {
    private let load: WebSocketDriver
    /// The ping that must have been answered by now.
    private let last: UInt64?
    init(_ load: WebSocketDriver, _ last: UInt64?) { (self.load, self.last) = (load, last) }
    func timerFired(now: Int64) { load.pingAgain(last) }
}

extension WebSocketDriver {
    func beginPinging() { schedulePing(nil) }

    private func schedulePing(_ last: UInt64?) {
        guard let interval = options.pingInterval, state.withLock({ $0.outcome == nil }) else { return }
        clock.schedule(WebSocketPinger(self, last), at: clock.now() &+ LoadHandle.nanoseconds(interval))
    }

    fileprivate func pingAgain(_ last: UInt64?) {
        guard state.withLock({ $0.outcome == nil && $0.transport != nil }) else { return }
        // The answer may have arrived unread.
        readAvailable()
        let isAnswered = state.withLock { state in
            guard let last else { return true }
            // Unreceived messages hold up the pong that follows them, which is not the server's fault.
            guard state.control.answer(to: last) != nil || !state.mayRead else { return false }
            state.control.forgetPing(last)
            return true
        }
        guard isAnswered else {
            let error = failure(.pingTimeout, .remote)
            state.withLock { $0.fail(error) }
            return settle()
        }
        let next = state.withLock { $0.control.queuePing() }
        _ = pump()
        schedulePing(next)
    }
}
