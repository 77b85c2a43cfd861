// SPDX-License-Identifier: Apache-2.0

// Records the events of loads for assertions, under one lock; every event wakes the waiting tasks.

import Synchronization
public import URLLoading
import URLLoadingIO

/// Records the events of all loads of a session, and checks their order.
///
/// ```swift
/// let recorder = EventRecorder()
/// configuration.observers = [recorder]
/// …
/// try await recorder.wait(for: .received)          // some load has received something
/// let events = recorder.events(of: task)
/// #expect(recorder.loads.allSatisfy { $0.isLegal }, "\(recorder)")
/// ```
/// For a single task of a session without such an observer, ``follow(_:)`` records its events. All records are
/// kept until the recorder is released, so it is meant for tests.
public final class EventRecorder: LoadObserver, CustomStringConvertible {
    private struct State: Sendable {
        var loads: [Record] = []
        var places: [UInt64: Int] = [:]
        var watchers: [PollSlot] = []
    }
    private let state = Lock(State())

    /// Creates an empty recorder.
    public init() {}

    /// Records an event. Called by sessions; tests may call it too.
    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        record(event, of: load.id, "\(load)")
    }

    /// Records the further events of one task, in a separate task that ends with them. Byte counts in quick succession
    /// may be merged; see ``/URLLoading/LoadEvents``. Do not use it for a task whose session already has this recorder
    /// as observer.
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

    // MARK: Records

    /// The recorded loads, in the order of their first events.
    public var loads: [Record] { state.withLock { $0.loads } }

    /// Returns the record of the load with that ``/URLLoading/LoadIdentity/id``; `nil` if it had no event.
    public func load(_ id: UInt64) -> Record? {
        state.withLock { state in state.places[id].map { state.loads[$0] } }
    }

    /// Returns the recorded events of one task.
    public func events(of task: LoadTask<some Sendable>) -> [LoadEvent] { load(task.id)?.events ?? [] }

    /// One line for each load; see ``Record/description``.
    public var description: String { loads.map(\.description).joined(separator: "\n") }

    // MARK: Waiting

    /// Waits until loads have had a number of events of one kind, including earlier ones.
    ///
    /// - Parameters:
    ///   - kind: the kind of event.
    ///   - id: the load; `nil` for any load.
    ///   - count: the number of such events, over all those loads.
    ///   - limit: the longest time to wait.
    /// - Returns: the last of these events.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public nonisolated(nonsending) func wait(
        for kind: Kind, of id: UInt64? = nil, count: Int = 1,
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> LoadEvent {
        let (number, place) = (count > 1 ? "\(count) events" : "an event", id.map { " of load \($0)" } ?? "")
        return try await wait(WaitLimit(limit, "\(number) \(kind)\(place)", file, line)) { loads in
            let events = loads.lazy.filter { id == nil || $0.id == id }.flatMap(\.events).filter { $0.kind == kind }
            return events.dropFirst(count - 1).first
        }
    }

    /// Waits until the recorded loads fulfil a condition.
    ///
    /// ```swift
    /// try await recorder.wait { loads in loads.count == 3 && loads.allSatisfy(\.isComplete) ? loads : nil }
    /// ```
    /// - Parameters:
    ///   - limit: the longest time to wait.
    ///   - condition: evaluated after every event; returns `nil` to continue waiting.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public nonisolated(nonsending) func wait<R: Sendable>(
        timeout limit: Duration = WaitTimedOut.usualLimit,
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
        } find: {
            condition(loads)
        } seen: {
            loads.shown()
        }
    }
}

extension EventRecorder {
    /// The recorded events of one load.
    public struct Record: Sendable, Identifiable, CustomStringConvertible {
        /// The load's ``/URLLoading/LoadIdentity/id``.
        public let id: UInt64
        fileprivate let title: String
        /// All events of the load, in order.
        public private(set) var events: [LoadEvent] = []
        /// False once an event violated the order that ``/URLLoading/LoadEventOrder`` defines.
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

        /// Whether the load has completed.
        public var isComplete: Bool { order.isComplete }
        /// The error with which the load failed; `nil` otherwise.
        public var error: LoadError? {
            guard case .completed(let error)? = events.last else { return nil }
            return error
        }
        /// The response that the load received; `nil` if there was none.
        public var response: Response? {
            for case .responded(let response) in events.reversed() { return response }
            return nil
        }
        /// The metrics of the load; `nil` until it completes.
        public var metrics: LoadMetrics? {
            for case .metrics(let metrics) in events.reversed() { return metrics }
            return nil
        }
        /// The number of body bytes received.
        public var received: Int64 {
            for case .received(let bytes) in events.reversed() { return bytes.total }
            return 0
        }

        /// For example `load 7 GET http://example.org/: redirected responded received metrics completed, 200, 5 bytes`.
        /// The line of a load in progress ends with `…`; an event out of order is prefixed with `!`.
        public var description: String {
            var text = "\(title): \(order)"
            if let status = response?.http?.status { text += ", \(status.code)" }
            if response != nil { text += ", \(received) bytes" }
            if let error { text += ", \(error)" }
            return isComplete ? text : text + " …"
        }
    }

    /// The kinds of ``/URLLoading/LoadEvent``, without associated values.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// ``/URLLoading/LoadEvent/canonicalized(_:)``
        case canonicalized
        /// ``/URLLoading/LoadEvent/bodySent(_:)``
        case bodySent
        /// ``/URLLoading/LoadEvent/informational(_:)``
        case informational
        /// ``/URLLoading/LoadEvent/retrying(_:)``
        case retrying
        /// ``/URLLoading/LoadEvent/retryRefused(_:)``
        case retryRefused
        /// ``/URLLoading/LoadEvent/waitingForConnectivity``
        case waitingForConnectivity
        /// ``/URLLoading/LoadEvent/challenged(_:)``
        case challenged
        /// ``/URLLoading/LoadEvent/redirected(_:)``
        case redirected
        /// ``/URLLoading/LoadEvent/responded(_:)``
        case responded
        /// ``/URLLoading/LoadEvent/becameDownload(_:)``
        case becameDownload
        /// ``/URLLoading/LoadEvent/becameStream(_:)``
        case becameStream
        /// ``/URLLoading/LoadEvent/resumed(offset:expected:)``
        case resumed
        /// ``/URLLoading/LoadEvent/received(_:)``
        case received
        /// ``/URLLoading/LoadEvent/stored``
        case stored
        /// ``/URLLoading/LoadEvent/notStored(_:)``
        case notStored
        /// ``/URLLoading/LoadEvent/metrics(_:)``
        case metrics
        /// ``/URLLoading/LoadEvent/completed(_:)``
        case completed
    }
}

extension LoadEvent {
    /// The kind of the event.
    fileprivate var kind: EventRecorder.Kind {
        switch self {
        case .canonicalized: .canonicalized
        case .bodySent: .bodySent
        case .informational: .informational
        case .retrying: .retrying
        case .retryRefused: .retryRefused
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
