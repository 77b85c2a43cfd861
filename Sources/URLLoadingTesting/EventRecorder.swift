// What loads went through, for assertions. One lock; whoever waits is woken at every event.

import Synchronization
public import URLLoading
import URLLoadingIO

/// Records every event of every load, and whether their order is legal.
///
/// ```swift
/// let recorder = EventRecorder()
/// configuration.observers = [recorder]
/// …
/// try await recorder.wait(for: .received)          // some load has received something
/// let events = recorder.events(of: task)
/// #expect(recorder.loads.allSatisfy { $0.isLegal }, "\(recorder)")
/// ```
/// For one task of a session that has no such observer, ``follow(_:)`` records ``LoadTask/events``.
/// Everything is kept until the recorder is dropped: it is made for tests.
public final class EventRecorder: LoadObserver, CustomStringConvertible {
    private struct State: Sendable {
        var loads: [Record] = []
        var places: [UInt64: Int] = [:]
        var watchers: [PollSlot] = []
    }
    private let state = Lock(State())

    /// A recorder of nothing yet.
    public init() {}

    /// Takes an event. Sessions call this; so may a test.
    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        record(event, of: load.id, "\(load)")
    }

    /// Records the events of one task from now on, in a task of its own that ends with them. Counts of
    /// bytes that follow each other fast may come as one; see ``LoadEvents``. Not for a task that the
    /// recorder observes anyway.
    public func follow(_ task: LoadTask<some Sendable>) {
        let (events, id, title) = (
            task.events, task.id, "load \(task.id) \(task.request.method) \(task.request.url.shown)"
        )
        Task { for await event in events { record(event, of: id, title) } }
    }

    private func record(_ event: LoadEvent, of id: UInt64, _ title: String) {
        let watchers = state.withLock { state in
            let place = state.places[id] ?? state.loads.endIndex
            if place == state.loads.endIndex {
                state.loads.append(Record(id: id, title: title))
                state.places[id] = place
            }
            state.loads[place].add(event)
            return state.watchers
        }
        for watcher in watchers { watcher.wake() }
    }

    // MARK: What was recorded

    /// The loads that had an event, in the order of their first.
    public var loads: [Record] { state.withLock { $0.loads } }

    /// The record of the load with that ``LoadIdentity/id``; `nil` if it had no event.
    public func load(_ id: UInt64) -> Record? {
        state.withLock { state in state.places[id].map { state.loads[$0] } }
    }

    /// The events of one task.
    public func events(of task: LoadTask<some Sendable>) -> [LoadEvent] { load(task.id)?.events ?? [] }

    /// One line per load; see ``Record/description``.
    public var description: String { loads.map(\.description).joined(separator: "\n") }

    // MARK: Waiting

    /// Waits until a load has had an event of a kind, which may have been before.
    ///
    /// - Parameters:
    ///   - kind: of the event.
    ///   - id: whose; `nil` for any load's.
    ///   - count: how many such events there must be, over all those loads.
    ///   - limit: of the wait.
    /// - Returns: the last of them.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public nonisolated(nonsending) func wait(
        for kind: Kind, of id: UInt64? = nil, count: Int = 1,
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> LoadEvent {
        let (number, place) = (count > 1 ? "\(count) events" : "an event", id.map { " of load \($0)" } ?? "")
        return try await wait(WaitLimit(limit, "\(number) \(kind)\(place)", file, line)) { loads in
            let events = loads.lazy.filter { id == nil || $0.id == id }.flatMap(\.events).filter { $0.kind == kind }
            return events.dropFirst(count - 1).first
        }
    }

    /// Waits until what was recorded is as it should be.
    ///
    /// ```swift
    /// try await recorder.wait { loads in loads.count == 3 && loads.allSatisfy(\.isComplete) ? loads : nil }
    /// ```
    /// - Parameters:
    ///   - limit: of the wait.
    ///   - condition: asked after every event; `nil` to wait on.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public nonisolated(nonsending) func wait<R: Sendable>(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable ([Record]) -> R?
    ) async throws -> R {
        try await wait(WaitLimit(limit, "the recorded loads", file, line), until: condition)
    }

    private nonisolated(nonsending) func wait<R: Sendable>(
        _ limit: WaitLimit, until condition: ([Record]) -> R?
    ) async throws -> R {
        try await limit.watch { slot, adds in
            state.withLock { state in
                if adds { state.watchers.append(slot) } else { state.watchers.removeAll { $0 === slot } }
            }
        } look: {
            condition(loads)
        } seen: {
            loads.shown()
        }
    }
}

extension EventRecorder {
    /// What happened to one load.
    public struct Record: Sendable, Identifiable, CustomStringConvertible {
        /// That of its ``LoadIdentity``.
        public let id: UInt64
        fileprivate let title: String
        /// All of its events, in order.
        public private(set) var events: [LoadEvent] = []
        /// False once an event came where ``LoadEventOrder`` does not allow it.
        public private(set) var isLegal = true
        private var order = LoadEventOrder()

        fileprivate init(id: UInt64, title: String) {
            self.id = id
            self.title = title
        }

        fileprivate mutating func add(_ event: LoadEvent) {
            events.append(event)
            if !order.accept(event) { isLegal = false }
        }

        /// Whether the load is over.
        public var isComplete: Bool { order.isComplete }
        /// Why it failed, if it did.
        public var error: LoadError? {
            guard case .completed(let error)? = events.last else { return nil }
            return error
        }
        /// The response it was given, if there was one.
        public var response: Response? {
            for case .responded(let response) in events.reversed() { return response }
            return nil
        }
        /// What it did with its time and bytes; `nil` while it goes on.
        public var metrics: LoadMetrics? {
            for case .metrics(let metrics) in events.reversed() { return metrics }
            return nil
        }
        /// Bytes of its body.
        public var received: Int64 {
            for case .received(let bytes) in events.reversed() { return bytes.total }
            return 0
        }

        /// `load 7 GET http://example.org/: redirected responded received metrics completed, 200, 5 bytes`. A load that
        /// goes on ends with `…`; an event out of order has a `!` before its name.
        public var description: String {
            var text = "\(title): \(order)"
            if let status = response?.http?.status { text += ", \(status.code)" }
            if response != nil { text += ", \(received) bytes" }
            if let error { text += ", \(error)" }
            return isComplete ? text : text + " …"
        }
    }

    /// The kinds of a ``LoadEvent``, without what they say.
    public enum Kind: Sendable, Hashable, CaseIterable {
        case canonicalized, bodySent, informational, retrying, waitingForConnectivity, challenged, redirected, responded
        case becameDownload, becameStream, resumed, received, stored, notStored, metrics, completed
    }
}

extension LoadEvent {
    /// What kind of event it is.
    fileprivate var kind: EventRecorder.Kind {
        switch self {
        case .canonicalized: .canonicalized
        case .bodySent: .bodySent
        case .informational: .informational
        case .retrying: .retrying
        case .waitingForConnectivity: .waitingForConnectivity
        case .challenged: .challenged
        case .redirected: .redirected
        case .responded: .responded
        case .becameDownload: .becameDownload
        case .becameStream: .becameStream
        case .resumed: .resumed
        case .received: .received
        case .stored: .stored
        case .notStored: .notStored
        case .metrics: .metrics
        case .completed: .completed
        }
    }
}
