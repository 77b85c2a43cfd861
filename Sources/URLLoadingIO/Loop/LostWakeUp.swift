// SPDX-License-Identifier: Apache-2.0

// Debug builds look for the fault that a loopback hides: a task waits although its socket holds data, because the
// notification of the data was used up, and it goes on only when a timer wakes it.

#if DEBUG
import Glibc
import Synchronization
import URLLoadingCSystem

/// A long wait that ended, by a timer or by a stop, while its socket held data of which no notification was left.
package enum LostWakeUp {
    /// Waits that are at least this long are looked at, in nanoseconds. Shorter ones may end by a timer on purpose
    /// (`ReceiveGathering`), and a peer's data may arrive at the same moment as the wake-up.
    static let leastWait: Int64 = 500_000_000
    /// How long data must lie there, in nanoseconds. Another task that shares the socket removes the mark before it
    /// reads, and a busy machine may stop it in between.
    private static let leastLook: Int64 = 200_000_000
    /// How long the polling thread is given to ask the kernel twice, in nanoseconds.
    private static let longestLook: Int64 = 2_000_000_000

    /// Called when a wait for input has ended that began at `start`.
    static func look(at slot: PollSlot, waitingSince start: Int64) {
        guard isLost(at: slot, waitingSince: start) else { return }
        let duration = (csys_now() - start) / 1_000_000
        report(
            "a wait of \(duration) ms ended although nothing told it of its socket's data (port \(port(of: slot)), "
                + "\(CommandLine.arguments.first ?? "?"))")
    }

    static func isLost(at slot: PollSlot, waitingSince start: Int64) -> Bool {
        let descriptor = slot.brief.descriptor.load(ordering: .acquiring)
        // On the polling thread itself nothing could be noted meanwhile.
        guard descriptor >= 0, csys_now() - start >= leastWait, !Poller.shared.isCurrentThread else { return false }
        // Data that has just arrived is noted once the polling thread has asked the kernel.
        let (turns, began) = (Poller.shared.turns.load(ordering: .acquiring), csys_now())
        while holdsUnnotedInput(slot, descriptor), csys_now() < began + longestLook {
            if Poller.shared.turns.load(ordering: .acquiring) >= turns + 2, csys_now() >= began + leastLook {
                return holdsUnnotedInput(slot, descriptor)
            }
            Poller.shared.turn()
            csys_nap(1_000_000)
        }
        return false
    }

    /// Data below the socket's low-water mark (`ReceiveGathering`) is not notified on purpose. Such a wait is brief,
    /// but its task may go on late on a busy machine; poll(2) does not tell of that data either.
    private static func holdsUnnotedInput(_ slot: PollSlot, _ descriptor: Int32) -> Bool {
        !slot.mayHoldInput && slot.brief.descriptor.load(ordering: .acquiring) == descriptor
            && csys_wait_readable(descriptor, 0) > 0 && csys_peek(descriptor) > 0
    }

    /// The local port tells which of a test's sockets it is; 0 for none. IPv4 and IPv6 have it in the same place.
    private static func port(of slot: PollSlot) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        _ = csys_local_address(slot.brief.descriptor.load(ordering: .acquiring), &storage, &length)
        guard [AF_INET, AF_INET6].contains(Int32(storage.ss_family)) else { return 0 }
        return withUnsafeBytes(of: storage) { Int($0[2]) << 8 | Int($0[3]) }
    }

    /// Writes the line to the standard error, and to the file that the environment names: `script/test` reads that file
    /// at the end, and so learns of waits in the programs that tests start.
    private static func report(_ line: String) {
        DebugNote.write(line)
        if let path = csys_environment("URLLOADING_LOST_WAKE_UPS") { csys_append_line(path, line + "\n") }
    }
}
#endif
