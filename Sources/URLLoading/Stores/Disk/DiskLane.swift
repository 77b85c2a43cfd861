// What is to be done to the disk, in order, by one thread at a time. A value behind its own lock.

import URLLoadingIO

struct DiskLane: Sendable {
    private var queue: [DiskOperation] = []
    /// A thread is at it.
    var isRunning = false
    /// Somebody waits: no more is gathered.
    var isUrgent = false
    /// Those who wait for the queue to become shorter.
    var waiters: [PollSlot] = []
    /// Until then nothing new is taken: the disk was full (`Poller.coarseNow`).
    var resumes: Int64 = .min

    /// Transactions that failed, one after another.
    var failures = 0

    /// A transaction should not be longer than this: others wait for it.
    private static let mostOperations = 256
    private static let mostBytes = 2 << 20

    var isEmpty: Bool { queue.isEmpty }

    mutating func add(_ operation: DiskOperation) { queue.append(operation) }
    /// Those that must be tried again, before all others.
    mutating func putBack(_ operations: [DiskOperation]) { queue.insert(contentsOf: operations, at: 0) }

    mutating func takeBatch() -> [DiskOperation] {
        var bytes = 0
        let count = queue.prefix(Self.mostOperations).prefix { operation in
            defer { bytes += operation.size }
            return bytes < Self.mostBytes
        }.count
        let batch = Array(queue[..<count])
        queue.removeFirst(count)
        return batch
    }
}
