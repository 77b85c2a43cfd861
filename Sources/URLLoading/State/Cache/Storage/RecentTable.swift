// SPDX-License-Identifier: Apache-2.0

/// A bounded table of what was used recently. It has two halves: when the newer one is full it becomes the older one,
/// and what was in the older one and has not been used since is forgotten. Each step takes constant time.
struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry: Sendable {
        let value: Value
        let cost: Int
    }
    private var newer: [Key: Entry] = [:]
    private var older: [Key: Entry] = [:]
    private var cost = 0
    private let capacity: Int

    /// - Parameter capacity: the limit of each half, in the unit of the costs.
    init(capacity: Int) { self.capacity = capacity }

    /// The value of a key, which is used thereby.
    subscript(_ key: Key) -> Value? {
        mutating get {
            if let entry = newer[key] { return entry.value }
            guard let entry = older[key] else { return nil }
            put(key, entry.value, cost: entry.cost)
            return entry.value
        }
    }

    mutating func put(_ key: Key, _ value: Value, cost added: Int = 1) {
        if cost + added > capacity {
            (older, newer, cost) = (newer, [:], 0)
        }
        // A value that is replaced counts until the halves change.
        cost += added
        newer[key] = Entry(value: value, cost: added)
    }

    mutating func removeAll() { (newer, older, cost) = ([:], [:], 0) }
}
