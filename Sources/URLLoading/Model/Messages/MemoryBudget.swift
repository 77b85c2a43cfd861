// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Bounds the memory of a kind of buffers in the process.
final class MemoryBudget: Sendable {
    /// For the large buffers into which bodies are read: with many fast bodies at once, each connection would hold one
    /// of half a MiB, and what readers have not consumed besides.
    static let reading = MemoryBudget(limit: 64 << 20)

    let limit: Int
    private let taken = Atomic<Int>(0)

    init(limit: Int) { self.limit = limit }

    /// The bytes of the buffers that exist.
    var used: Int { taken.load(ordering: .relaxed) }

    /// Returns a buffer that counts until its last chunk is released; `nil` if it would exceed the limit.
    func buffer(capacity: Int) -> ChunkStorage? {
        // More than the limit is not added: the sum could overflow.
        guard capacity >= 0, capacity <= limit else { return nil }
        guard taken.add(capacity, ordering: .relaxed).newValue <= limit else {
            giveBack(capacity)
            return nil
        }
        return ChunkStorage(capacity: capacity, of: self)
    }

    func giveBack(_ capacity: Int) { taken.subtract(capacity, ordering: .relaxed) }
}
