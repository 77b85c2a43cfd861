import Synchronization
import URLLoadingIO

/// The events of one ``LoadTask``, from the moment the sequence was asked for to
/// ``LoadEvent/completed(_:)``, its last element, or to the one that hands it over to another task.
///
/// Each sequence is its own; nobody who reads slowly, or not at all, holds up the load or another
/// reader: what waits to be read is bounded, for counts of bytes that follow each other become one, and
/// beyond 256 events the oldest are dropped. Asked for when the load is over, it has the last two events only.
///
/// ```swift
/// let events = task.events
/// task.resume()
/// for await case .received(let bytes) in events { print(bytes.total) }
/// ```
/// Cancelling the task that iterates ends the iteration, and nothing else.
public struct LoadEvents: AsyncSequence, Sendable {
    public typealias Element = LoadEvent
    public typealias Failure = Never

    private let listening: EventListening

    init(_ queue: EventQueue, _ load: TaskDriver) { listening = EventListening(queue, load) }

    public func makeAsyncIterator() -> Iterator { Iterator(listening: listening) }

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

/// A place among the readers of a load's events, given up with the last reference to it.
private final class EventListening: Sendable {
    let queue: EventQueue
    private weak let load: TaskDriver?

    init(_ queue: EventQueue, _ load: TaskDriver) {
        self.queue = queue
        self.load = load
    }

    deinit { load?.forget(queue) }
}

/// Events on their way to one reader.
final class EventQueue: Sendable {
    fileprivate struct State: Sendable {
        var events: [LoadEvent] = []
        var hasEnded = false
        var reader: PollSlot?
    }
    private let state = Lock(State())
    private static let most = 256

    func append(_ event: LoadEvent) {
        let reader = state.withLock { state in
            state.add(event, most: Self.most)
            return state.reader
        }
        // What comes right after it wakes the reader for both.
        if case .metrics = event { return }
        reader?.wake()
    }

    func next() async -> LoadEvent? {
        if let ready = state.withLock({ $0.take() }) { return ready.event }
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        return await withTaskCancellationHandler {
            while true {
                let ready = state.withLock { state in
                    let ready = Task.isCancelled ? State.Ready(event: nil) : state.take()
                    state.reader = ready == nil ? slot : nil
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
    /// An event, or the end.
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
    /// Counts of bytes that follow each other say as much as one.
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
