// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Synchronization
import URLLoadingIO

/// Wakes the drivers of connections when the networks of this machine change: one reader of the kernel's reports for
/// all connections of a session, while there are any. Where the system does not permit that, no change is noticed.
final class PathNews: Sendable {
    private let source: any PathSource
    private let count = Atomic<Int>(0)
    private let state = Lock(State())

    private struct State: Sendable {
        var slots: [ObjectIdentifier: PollSlot] = [:]
        /// Ends the reader. Set while there are slots, also if the reader could not begin.
        var reader: StopToken?
    }

    init(_ source: any PathSource) { self.source = source }

    /// The number of changes so far.
    var changeCount: Int { count.load(ordering: .acquiring) }

    /// Wakes a slot upon each change from now on.
    func add(_ slot: PollSlot) {
        let token: StopToken? = state.withLock { state in
            state.slots[ObjectIdentifier(slot)] = slot
            guard state.reader == nil else { return nil }
            state.reader = StopToken()
            return state.reader
        }
        if let token { _ = Task.apart(priority: .medium) { await self.read(token) } }
    }

    func remove(_ slot: PollSlot) {
        let token: StopToken? = state.withLock { state in
            state.slots[ObjectIdentifier(slot)] = nil
            guard state.slots.isEmpty else { return nil }
            defer { state.reader = nil }
            return state.reader
        }
        token?.stop(.cancelled)
    }

    private func read(_ token: StopToken) async {
        // What the connection has to send does not wait for the kernel's tables.
        await Task.yield()
        guard let monitor = try? PathMonitor(source), (try? monitor.begin()) != nil else { return }
        defer { monitor.close() }
        // The networks may have changed before.
        repeat {
            count.add(1, ordering: .releasing)
            for slot in state.withLock({ Array($0.slots.values) }) { slot.wake() }
        } while (try? await monitor.change(token)) != nil
    }
}

#endif
