// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Receives the events of every load of a session: for logs, metrics, traces.
///
/// ```swift
/// struct Failures: LoadObserver {
///     func observe(_ event: LoadEvent, of load: LoadIdentity) {
///         if case .completed(let error?) = event { print(load, error) }
///     }
/// }
/// configuration.observers = [Failures()]
/// ```
/// Called in the load's own task, where its task-local values can be read (a stop from outside may complete a load on
/// the thread that stopped it). The load waits meanwhile: be quick, and never block. ``LoadLogger``, ``LoadStatistics``
/// and ``LoadTracer`` are observers.
public protocol LoadObserver: Sendable {
    /// Called before a request of the load is answered: the first, and one for each redirect. The observer may add
    /// fields, such as `traceparent`; it must not change the URL, which is a handler's task.
    func willSend(_ request: inout Request, of load: LoadIdentity)
    /// Called for each event, in the order of ``LoadEventOrder``, one at a time for each load. If a ``ProtocolHandler``
    /// runs two requests at once, their events may interleave, and may be reported concurrently.
    func observe(_ event: LoadEvent, of load: LoadIdentity)
}

extension LoadObserver {
    public func willSend(_ request: inout Request, of load: LoadIdentity) {}
}

/// Receives the head of every response as well, interim and refused ones and those of the cache included: `urlload -D`.
package protocol HeadObserver: LoadObserver {
    func received(_ head: HTTPHead)
    /// Called before a connection for a request is sought, also for one that is repeated with credentials.
    /// - Parameter fields: the fields as HTTP/1.1 sends them.
    func sends(_ request: Request, _ fields: Headers)
}

/// The identity of the load that an event belongs to.
public struct LoadIdentity: Sendable, Identifiable, CustomStringConvertible {
    /// The identifier of the load, unique in this process.
    public let id: UInt64
    /// The caller's request.
    public let request: Request
    /// The time at which the load was created.
    public let created: ContinuousClock.Instant

    init(_ request: Request) {
        id = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
        self.request = request
        created = .now
    }
    private static let last = Atomic<UInt64>(0)

    /// The load on one line, without userinfo and query: `load 7 GET https://example.org/`.
    public var description: String { "load \(id) \(request.method) \(request.url.withoutSecrets)" }
}
