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
            lanes[place].waiters.append(waiter)
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

        /// The waiters of one priority.
        private struct Lane {
            let priority: UInt8
            // Removed waiters are set to nil, because a waiter refers to the connection it was given.
            var waiters: [Waiter?] = []
            private var head = 0
            var isEmpty: Bool { head == waiters.count }

            init(priority: UInt8) { self.priority = priority }

            mutating func popFirst() -> Waiter? {
                defer {
                    waiters[head] = nil
                    head += 1
                    if head > 32, head * 2 > waiters.count {
                        waiters.removeFirst(head)
                        head = 0
                    }
                }
                return waiters[head]
            }

            mutating func remove(_ waiter: Waiter) -> Bool {
                guard let index = waiters[head...].firstIndex(where: { $0 === waiter }) else { return false }
                waiters.remove(at: index)
                return true
            }
        }
    }
}
