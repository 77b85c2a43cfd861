// SPDX-License-Identifier: Apache-2.0

// Debug builds look for the fault that a loopback hides: a task waits although its socket holds data, because the
// notification of the data was used up, and it goes on only when a timer wakes it.

#if DEBUG
import Synchronization
import URLLoadingCSystem

/// A long wait that ended, by a timer or by a stop, while its socket held data of which no notification was left.
package enum LostWakeUp {
    /// Waits that are at least this long are looked at, in nanoseconds. Shorter ones may end by a timer on purpose
    /// (`ReceiveGathering`), and a peer's data may arrive at the same moment as the wake-up.
    static let leastWait: Int64 = 500_000_000
    /// How long the polling thread is given to ask the kernel twice, in nanoseconds.
    private static let longestLook: Int64 = 2_000_000_000

    /// Called when a wait for input has ended that began at `start`.
    static func look(at slot: PollSlot, waitingSince start: Int64) {
        guard isLost(at: slot, waitingSince: start) else { return }
        report("a wait of \((csys_now() - start) / 1_000_000) ms ended although nothing told it of its socket's data")
    }

    static func isLost(at slot: PollSlot, waitingSince start: Int64) -> Bool {
        let descriptor = slot.brief.descriptor.load(ordering: .acquiring)
        // On the polling thread itself nothing could be noted meanwhile.
        guard descriptor >= 0, csys_now() - start >= leastWait, !Poller.shared.isCurrentThread else { return false }
        // Data that has just arrived is noted once the polling thread has asked the kernel.
        let (turns, latest) = (Poller.shared.turns.load(ordering: .acquiring), csys_now() + longestLook)
        while holdsUnnotedInput(slot, descriptor), csys_now() < latest {
            if Poller.shared.turns.load(ordering: .acquiring) >= turns + 2 {
                return holdsUnnotedInput(slot, descriptor)
            }
            Poller.shared.turn()
            csys_nap(1_000_000)
        }
        return false
    }

    private static func holdsUnnotedInput(_ slot: PollSlot, _ descriptor: Int32) -> Bool {
        !slot.mayHoldInput && slot.brief.descriptor.load(ordering: .acquiring) == descriptor
            && csys_peek(descriptor) > 0
    }

    /// Writes the line to the standard error, and to the file that the environment names: `script/test` reads that file
    /// at the end, and so learns of waits in the programs that tests start.
    private static func report(_ line: String) {
        DebugNote.write(line)
        if let path = csys_environment("URLLOADING_LOST_WAKE_UPS") { csys_append_line(path, line + "\n") }
    }
}
#endif
