// SPDX-License-Identifier: Apache-2.0

// A call that has to wait. It ends with its socket, with its own timeout, or with the cancellation of the calling task;
// in the last two cases the socket continues.

import URLLoadingIO

struct WebSocketCall: Sendable {
    /// The timeout of the call; nil for none.
    let limit: Duration?
    let deadline: Int64
    /// The slot where the call waits for other calls; borrowed until the call has ended.
    let slot: PollSlot
    /// Stopped when the calling task is cancelled.
    let token: StopToken

    init(timeout limit: Duration?, _ clock: LoopClock) {
        self.limit = limit
        slot = Poller.shared.borrowSlot()
        deadline = limit.map { clock.now() &+ LoadHandle.nanoseconds($0) } ?? .max
        token = StopToken(clock: clock)
        token.attach(slot)
    }

    func finish() {
        token.detach(slot)
        Poller.shared.returnSlot(slot)
    }
}
