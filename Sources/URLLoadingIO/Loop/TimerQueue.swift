// SPDX-License-Identifier: Apache-2.0

// A binary heap of the moments at which the poller must wake. A timer that is no longer needed stays until its moment
// and then finds its slot recycled or its target gone, which is harmless by rule 1 of `PollSlot`.

/// Called on the poller's thread, which holds no lock of its own meanwhile. Implementations record the event and return
/// at once.
package protocol TimerTarget: AnyObject, Sendable {
    func timerFired(now: Int64)
}

struct TimerQueue {
    enum Target: Sendable {
        case slot(PollSlot)
        case object(any TimerTarget)
    }
    private struct Entry {
        let moment: Int64
        let target: Target
    }
    private var heap: [Entry] = []

    /// The earliest moment; `.max` if the queue is empty.
    var next: Int64 { heap.first?.moment ?? .max }
    var count: Int { heap.count }

    mutating func add(_ moment: Int64, _ target: Target) {
        heap.append(Entry(moment: moment, target: target))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].moment < heap[parent].moment else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popDue(at now: Int64) -> Target? {
        guard let first = heap.first, first.moment <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown()
        }
        return first.target
    }

    private mutating func siftDown() {
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { return }
            let right = left + 1
            let child = right < heap.count && heap[right].moment < heap[left].moment ? right : left
            guard heap[child].moment < heap[parent].moment else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }
}
