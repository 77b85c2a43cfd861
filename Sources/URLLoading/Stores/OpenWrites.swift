// Writes under way. A removal reaches them too: what was asked to go must not come back when its writer is done.

struct OpenWrites: Sendable {
    private struct Write: Sendable {
        let key: CacheKey
        let responseTime: Double
        /// What it completes, or 0.
        let base: Int64
    }
    private var writes: [Int64: Write] = [:]

    mutating func begin(_ response: StoredResponse, completing base: Int64 = 0) {
        writes[response.id] = Write(key: response.key, responseTime: response.responseTime, base: base)
    }

    /// Ends one; returns `false` if its response was removed meanwhile.
    mutating func end(_ id: Int64) -> Bool { writes.removeValue(forKey: id) != nil }

    mutating func void(_ key: CacheKey) {
        guard !writes.isEmpty else { return }
        writes = writes.filter { $0.value.key != key }
    }

    /// Those that complete a response that is gone.
    mutating func void(completing id: Int64) {
        guard !writes.isEmpty else { return }
        writes = writes.filter { $0.value.base != id }
    }

    mutating func voidAll(since moment: Double?) {
        guard let moment else { return writes.removeAll() }
        writes = writes.filter { $0.value.responseTime < moment }
    }
}
