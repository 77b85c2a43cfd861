// Who waits for a connection to one route, in the order of their turns: the more urgent before the less,
// and among equals who came first. Whoever is urgent passes all others, as often as it comes: that is what
// a priority means, and nothing ages.

extension PoolState {
    struct WaiterQueue {
        /// The most urgent first; none is empty. Hardly ever are there more than two.
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

        /// Those of one priority.
        private struct Lane {
            let priority: UInt8
            // Gone ones are nil: a waiter refers to the connection it was given.
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
