// SPDX-License-Identifier: Apache-2.0

// A call that has to wait. It ends with its socket, with its own timeout, or with the cancellation of the calling task;
// in the last two cases the socket continues.

import URLLoadingIO

final class WebSocketCall: StopToken, @unchecked Sendable {
    let deadline: Int64
    /// The slot where the call waits for other calls; borrowed until the call has ended.
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
