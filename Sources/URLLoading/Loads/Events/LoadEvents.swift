// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// The events of one ``LoadTask``, from the moment the sequence was requested to its last element:
/// ``LoadEvent/completed(_:)``, or the event that hands the load over to another task.
///
/// Each sequence has a queue of its own, so a slow or idle reader delays neither the load nor other readers. The queue
/// is bounded: consecutive progress events are merged, and beyond 256 events the oldest are dropped. A sequence that is
/// requested after the load has ended yields the last two events only.
///
/// ```swift
/// let events = task.events
/// task.resume()
/// for await case .received(let bytes) in events { print(bytes.total) }
/// ```
/// Cancelling the task that iterates ends the iteration; the load continues.
public struct LoadEvents: AsyncSequence, Sendable {
    public typealias Element = LoadEvent
    public typealias Failure = Never

    private let listening: EventListening

    init(_ queue: EventQueue, _ load: TaskDriver) { listening = EventListening(queue, load) }

    public func makeAsyncIterator() -> Iterator { Iterator(listening: listening) }

    /// The iterator of the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let listening: EventListening

        /// The next event; `nil` after the last, or when the calling task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> LoadEvent? {
            await listening.queue.next()
        }
        /// The next event; `nil` after the last, or when the calling task is cancelled.
        public mutating func next() async -> LoadEvent? { await listening.queue.next() }
    }
}

/// The registration of one reader for a load's events. Releasing the last reference removes the registration.
private final class EventListening: Sendable {
    let queue: EventQueue
    private weak let load: TaskDriver?

    init(_ queue: EventQueue, _ load: TaskDriver) {
        self.queue = queue
        self.load = load
    }

    deinit { load?.forget(queue) }
}

/// The queue of undelivered events of one reader.
final class EventQueue: Sendable {
    fileprivate struct State: Sendable {
        var events: [LoadEvent] = []
        var hasEnded = false
        /// The waiting calls: a sequence may be iterated by several tasks, each of which gets some of the events.
        var readers: [PollSlot] = []
    }
    private let state = Lock(State())
    private static let most = 256

    func append(_ event: LoadEvent) {
        let readers = state.withLock { state in
            state.add(event, most: Self.most)
            return state.readers
        }
        // The completion event follows the metrics at once, and one wake-up delivers both.
        if case .metrics = event { return }
        for reader in readers { reader.wake() }
    }

    func next() async -> LoadEvent? {
        if let ready = state.withLock({ $0.take() }) { return ready.event }
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        return await withTaskCancellationHandler {
            while true {
                let ready = state.withLock { state in
                    let ready = Task.isCancelled ? State.Ready(event: nil) : state.take()
                    state.readers.removeAll { $0 === slot }
                    if ready == nil { state.readers.append(slot) }
                    return ready
                }
                if let ready { return ready.event }
                await Poller.shared.park(slot, until: .never)
            }
        } onCancel: {
            slot.wake()
        }
    }
}

extension EventQueue.State {
    /// The result of taking from a queue: the next event, or nil for the end of the sequence.
    struct Ready: Sendable {
        let event: LoadEvent?
    }

    mutating func take() -> Ready? {
        if events.isEmpty { return hasEnded ? Ready(event: nil) : nil }
        return Ready(event: events.removeFirst())
    }

    mutating func add(_ event: LoadEvent, most: Int) {
        switch event {
        case .completed, .becameDownload, .becameStream: hasEnded = true
        default: break
        }
        if let last = events.last, let both = last.joined(with: event) {
            events[events.count - 1] = both
            return
        }
        if events.count == most { events.removeFirst() }
        events.append(event)
    }
}

extension LoadEvent {
    /// Merges two consecutive progress events of one kind into one.
    fileprivate func joined(with next: LoadEvent) -> LoadEvent? {
        switch (self, next) {
        case (.received(let first), .received(let second)): .received(first.joined(with: second))
        case (.bodySent(let first), .bodySent(let second)) where second.total > Int64(second.count):
            .bodySent(first.joined(with: second))
        default: nil
        }
    }
}

extension TransferProgress {
    fileprivate func joined(with next: TransferProgress) -> TransferProgress {
        TransferProgress(count: count + next.count, total: next.total, expected: next.expected)
    }
}
