// SPDX-License-Identifier: Apache-2.0

// What other processes have changed. The lock file has a number that each transaction increments twice: it is odd while
// rows change, and after a process was killed meanwhile. As long as it is even and the same, no row has changed, and
// that is known without SQLite and without a wait.

import Synchronization
import URLLoadingIO

extension DiskStorage {
    /// The longest time for which changes of other processes may go unnoticed, in nanoseconds.
    static let checkInterval: Int64 = 100_000_000
    /// The longest time without a look at the database itself: its folder may have been moved.
    static let longCheckInterval: Int64 = 10_000_000_000

    /// Whether it is known, without a wait, that other processes have changed nothing.
    func isUpToDate() -> Bool {
        let now = Poller.coarseNow()
        let (isRecent, number) = state.withLock { state in
            (
                state.phase.hasFailed || now &- state.lastCheck < Self.checkInterval,
                state.phase == .open && now &- state.lastLongCheck < Self.longCheckInterval ? state.changeNumber : nil
            )
        }
        if isRecent { return true }
        guard let number, changeNumberNow() == number else { return false }
        state.withLock { state in if state.changeNumber == number { state.lastCheck = now } }
        return true
    }

    /// Reads the changes of other processes.
    func readChanges(_ reader: DiskTables, _ now: Int64) throws(DatabaseFailure) {
        guard PathIdentity(paths.database) == reader.identity else { return submit(.readChanges) }
        // Read before the rows, so that a later change has another number.
        let number = changeNumber()
        let found = try reader.state()
        let (known, seen, keys) = state.withLock { ($0.known, $0.seen, $0.keys.mark) }
        // Another number, larger or not: that of a new row of `state` begins anew.
        let isForeign = found.changes != known.changes
        var hashes: [Int64] = []
        let last = isForeign ? try reader.hashes(after: keys.isFull ? 0 : seen) { hashes.append($0) } : seen
        state.withLock { state in
            state.sawChanges(number, now)
            guard isForeign, found.changes != state.known.changes else { return }
            if keys.isFull { state.keys.replace(with: hashes, since: keys) } else { state.keys.add(hashes) }
            state.seen = max(state.seen, last)
            state.known = found
            state.epoch += 1
        }
        if isForeign { packs.close() }
    }

    /// The number in the lock file; `nil` while rows change. Blocks.
    func changeNumber() -> UInt64? {
        let open = changes.withLock { $0 }
        if open?.isAt(paths.lock) != true {
            let reader = try? FileReader(path: paths.lock)
            reader?.leaveAccessTime()
            changes.withLock { $0 = reader }
        }
        return changeNumberNow()
    }

    private func changeNumberNow() -> UInt64? {
        guard let reader = changes.withLock({ $0 }) else { return nil }
        var number: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &number) { (try? reader.readNow(into: $0, at: 0)) ?? nil }
        guard count == MemoryLayout<UInt64>.size, number > 0, number % 2 == 0 else { return nil }
        // Asked last: where nothing can be read without a wait, this may wait for a server.
        return reader.isRemoved ? nil : number
    }

    /// Changes rows under the lock of the folder; returns the number of the state after it.
    func change(_ lock: FileLock, _ work: () throws(DatabaseFailure) -> Void) throws(DatabaseFailure) -> UInt64 {
        let during = lock.number | 1
        do throws(IOFailure) { try lock.write(during) } catch { throw DatabaseFailure(lock: error) }
        // Without this number the next look-up asks the database.
        defer { try? lock.write(during &+ 1) }
        try work()
        return during &+ 1
    }
}
