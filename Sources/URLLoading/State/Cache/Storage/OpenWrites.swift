// SPDX-License-Identifier: Apache-2.0

// The writes under way. A removal also voids them, so that a removed response does not come back when its write ends.

struct OpenWrites: Sendable {
    private struct Write: Sendable {
        let key: CacheKey
        let responseTime: Double
        /// The id of the partial response that is completed, or 0.
        let base: Int64
    }
    private var writes: [Int64: Write] = [:]

    mutating func begin(_ response: StoredResponse, completing base: Int64 = 0) {
        writes[response.id] = Write(key: response.key, responseTime: response.responseTime, base: base)
    }

    /// Ends a write; returns `false` if its response has been removed.
    mutating func end(_ id: Int64) -> Bool { writes.removeValue(forKey: id) != nil }

    mutating func void(_ key: CacheKey) {
        guard !writes.isEmpty else { return }
        writes = writes.filter { $0.value.key != key }
    }

    /// Voids the writes that complete a removed response.
    mutating func void(completing id: Int64) {
        guard !writes.isEmpty else { return }
        writes = writes.filter { $0.value.base != id }
    }

    mutating func invalidateAll(since moment: Double?) {
        guard let moment else { return writes.removeAll() }
        writes = writes.filter { $0.value.responseTime < moment }
    }
}
