// SPDX-License-Identifier: Apache-2.0

// The loads that wait for a connection to one route, ordered by priority, then by arrival. A load of high priority
// passes all others, without limit: waiters do not age.

extension PoolState {
    struct WaiterQueue {
        /// One lane for each priority, the highest first; no lane is empty. There are rarely more than two.
        private var lanes: [Lane] = []
        private(set) var count = 0

        mutating func append(_ waiter: Waiter) {
            let place = lanes.firstIndex { $0.priority <= waiter.priority } ?? lanes.endIndex
            if place == lanes.endIndex || lanes[place].priority != waiter.priority {
                lanes.insert(Lane(priority: waiter.priority), at: place)
            }
            lanes[place].append(waiter)
            count += 1
        }

        mutating func popFirst() -> Waiter? {
            guard !lanes.isEmpty else { return nil }
            let first = lanes[0].popFirst()
            if lanes[0].isEmpty { lanes.removeFirst() }
            count -= 1
            return first
        }

        mutating func remove(_ waiter: Waiter) {
            guard let place = lanes.firstIndex(where: { $0.priority == waiter.priority }), lanes[place].remove(waiter)
            else { return }
            if lanes[place].isEmpty { lanes.remove(at: place) }
            count -= 1
        }

        /// The waiters of one priority. A waiter knows its place, so that removing one costs no search; the place is
        /// left empty, and empty places are removed together.
        private struct Lane {
            let priority: UInt8
            // An optional, because a waiter refers to the connection it was given.
            private var waiters: [Waiter?] = []
            /// The first place that may be taken.
            private var head = 0
            /// The number of places that are taken.
            private var count = 0
            var isEmpty: Bool { count == 0 }

            init(priority: UInt8) { self.priority = priority }

            mutating func append(_ waiter: Waiter) {
                waiter.place = waiters.count
                waiters.append(waiter)
                count += 1
            }

            mutating func popFirst() -> Waiter? {
                while head < waiters.count {
                    if let first = waiters[head] {
                        _ = remove(first)
                        return first
                    }
                    head += 1
                }
                return nil
            }

            mutating func remove(_ waiter: Waiter) -> Bool {
                guard waiters.indices.contains(waiter.place), waiters[waiter.place] === waiter else { return false }
                waiters[waiter.place] = nil
                count -= 1
                if waiters.count > 2 * count + 32 { close() }
                return true
            }

            /// Removes the empty places. Each has cost a removal, so this costs as much as the removals did.
            private mutating func close() {
                waiters.removeAll { $0 == nil }
                for (place, waiter) in waiters.enumerated() { waiter?.place = place }
                head = 0
            }
        }
    }
}
