// The caller's own code inside a load: a decision, the sequence of a body. It knows nothing of our
// slots, but it can be cancelled: it runs as a child task, beside one that waits for the load to be
// stopped. Task groups cost some microseconds, so nothing else runs this way.

import URLLoadingIO

enum Interruption {
    private enum Child<R: Sendable>: Sendable {
        case finished(R)
        case stopped
    }

    /// What `work` returns. Stopping the load cancels it; code that does not listen to its
    /// cancellation is waited for all the same.
    static func run<R: Sendable>(_ control: LoadControl, _ work: @escaping @Sendable () async -> R) async -> R? {
        let slot = Poller.shared.borrowSlot()
        control.attach(slot)
        defer {
            control.detach(slot)
            Poller.shared.returnSlot(slot)
        }
        return await withTaskGroup(of: Child<R>.self) { group in
            group.addTask { .finished(await work()) }
            group.addTask {
                await watch(slot, control)
                return .stopped
            }
            var result: R?
            // Whichever child ends first, the other has no reason to go on.
            for await child in group {
                if case .finished(let value) = child { result = value }
                group.cancelAll()
            }
            return result
        }
    }

    private static func watch(_ slot: PollSlot, _ control: LoadControl) async {
        await withTaskCancellationHandler {
            while !Task.isCancelled, control.stopReason == nil { await Poller.shared.park(slot, until: control) }
        } onCancel: {
            slot.wake()
        }
    }
}
