// SPDX-License-Identifier: Apache-2.0

/// The state of a ``LoadTask`` at one moment.
public struct LoadSnapshot: Sendable, CustomStringConvertible {
    /// The states of a load.
    public enum State: Sendable {
        /// Not started, or suspended.
        case suspended
        /// Under way.
        case running
        /// Cancelled or timed out; the load has not ended yet.
        case canceling
        /// Ended; `nil` if the load succeeded.
        case completed(LoadError?)
    }
    /// The state at that moment.
    public let state: State
    /// The number of bytes of the request's body that were handed to the system.
    public let sent: Int64
    /// The number of decoded bytes of the response's body that were received.
    public let received: Int64
    /// The length of the request's body in bytes; 0 without a body, `nil` if unknown.
    public let expectedToSend: Int64?
    /// The length of the response's body in bytes; `nil` if unknown, or not known yet.
    public let expectedToReceive: Int64?
    /// The priority of the task that resumed the load, or the last argument of ``LoadTask/prioritize(_:)``; `nil`
    /// before ``LoadTask/resume()``.
    public var priority: TaskPriority? { rawPriority.map { TaskPriority(rawValue: $0) } }
    /// A number: the size of `TaskPriority` is known at run time only, which makes each copy of what holds one slow.
    private let rawPriority: TaskPriority.RawValue?

    init(_ state: State, _ counts: LoadCounts, _ priority: TaskPriority.RawValue?) {
        self.state = state
        rawPriority = priority
        (sent, received) = (counts.sent, counts.received)
        (expectedToSend, expectedToReceive) = (counts.expectedToSend, counts.expectedToReceive)
    }

    public var description: String {
        let word =
            switch state {
            case .suspended: "suspended"
            case .running: "running"
            case .canceling: "canceling"
            case .completed(nil): "completed"
            case .completed(let error?): "failed(\(error.reason))"
            }
        return "\(word) \(received)/\(expectedToReceive.map(String.init) ?? "?")"
    }
}

/// The bytes of a load's bodies.
struct LoadCounts: Sendable {
    var sent: Int64 = 0
    var received: Int64 = 0
    var expectedToSend: Int64?
    var expectedToReceive: Int64?
}
