// One call that has to wait: it ends with its socket, with its own time, or with the task that made it, and then the
// socket goes on without it.

import URLLoadingIO

final class WebSocketCall: StopToken, @unchecked Sendable {
    let deadline: Int64
    /// Where it waits for others; lent for as long as it goes on.
    let slot: PollSlot

    init(timeout limit: Duration?, _ clock: LoopClock) {
        slot = Poller.shared.borrowSlot()
        deadline = limit.map { clock.now() &+ LoadHandle.nanoseconds($0) } ?? .max
        super.init(clock: clock)
        attach(slot)
    }

    func finish() {
        detach(slot)
        Poller.shared.returnSlot(slot)
    }
}
