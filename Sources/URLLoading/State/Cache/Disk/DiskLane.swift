// SPDX-License-Identifier: Apache-2.0

// The queue of disk operations, which one thread carries out in order. A value behind its own lock.

import URLLoadingIO

struct DiskLane: Sendable {
    private var queue: [DiskOperation] = []
    /// A thread is processing the queue.
    var isRunning = false
    /// A caller waits for the queue, so the next batch starts at once.
    var isUrgent = false
    /// The tasks that wait for the queue to become shorter.
    var waiters: [PollSlot] = []
    /// The time until which nothing is stored because the disk was full (`Poller.coarseNow`).
    var resumes: Int64 = .min

    /// The nanoseconds for which the next batch is collected, unless it is urgent.
    private(set) var pause = collecting
    private static let collecting: Int64 = 5_000_000
    private static let retrying: Int64 = 100_000_000
    private static let retryingWhenFull: Int64 = 1_000_000_000

    /// The number of consecutive failed transactions.
    var failures = 0

    /// The limit of a transaction, because other processes wait for its end.
    private static let maximumOperations = 256
    private static let maximumBytes = 2 << 20

    /// The number of operations at the front that were put back. What is behind them is tried, or given up, with them.
    private var returned = 0

    var isEmpty: Bool { queue.isEmpty }

    mutating func add(_ operation: DiskOperation) { queue.append(operation) }
    /// Puts operations to retry before all others, for a little later.
    mutating func putBack(_ operations: [DiskOperation]) {
        queue.insert(contentsOf: operations, at: 0)
        returned = operations.count
        pause = resumes > Poller.coarseNow() ? Self.retryingWhenFull : Self.retrying
    }

    mutating func takeBatch() -> [DiskOperation] {
        pause = Self.collecting
        var bytes = 0
        let new = queue.dropFirst(returned).prefix(Self.maximumOperations).prefix { operation in
            defer { bytes += operation.size }
            return bytes < Self.maximumBytes
        }
        let count = returned + new.count
        returned = 0
        let batch = Array(queue[..<count])
        queue.removeFirst(count)
        return batch
    }
}
