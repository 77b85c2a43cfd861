// Asks a server now and then whether it is still there.

import Synchronization
import URLLoadingIO

final class WebSocketPinger: TimerTarget {
    private let load: WebSocketDriver
    /// The ping that has to be answered by now.
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
        // The answer may lie unread.
        look()
        let isAnswered = state.withLock { state in
            guard let last else { return true }
            // What nobody receives holds its pong up: that is not the server's silence.
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
