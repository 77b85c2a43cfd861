/// What was found in a stream of server-sent events.
package enum EventStreamItem: Sendable, Hashable {
    /// An event to hand on.
    case event(ServerSentEvent)
    /// How long to wait before connecting again, in milliseconds, 0 or more. What the server says; how
    /// much of it to believe is for whoever waits.
    case retry(milliseconds: Int64)
}

/// One event that a server sent (WHATWG HTML 9.2.6).
///
/// ```swift
/// ServerSentEvent(type: "price", data: "12.50", lastEventID: "81")
/// ```
public struct ServerSentEvent: Sendable, Hashable {
    /// `message` unless the server named another type.
    public var type: String
    /// The lines of data, joined by LF. Text: what was no UTF-8 is repaired.
    public var data: String
    /// What to send as Last-Event-ID when connecting again; the one of an earlier event if this one had
    /// none, empty if there was none at all.
    public var lastEventID: String

    /// An event of its parts: for tests and stubs, servers send the others.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}

/// How much a peer may make us hold. In bytes.
package struct EventStreamLimits: Sendable, Hashable {
    /// One line without its end, comments as well. Senders put a whole document into one line of JSON.
    package var lineSize = 1 << 20
    /// The data and the type of one event.
    package var eventSize = 8 << 20

    package init() {}

    /// Numbers that can be added to without a thought.
    var clamped: EventStreamLimits {
        var limits = self
        limits.lineSize = min(max(0, lineSize), 1 << 30)
        limits.eventSize = min(max(0, eventSize), 1 << 30)
        return limits
    }
}

extension WireViolation.Code {
    /// A line of server-sent events longer than the limit.
    public static let eventLineTooLong = WireViolation.Code(rawValue: "eventLineTooLong")
    /// A server-sent event larger than the limit.
    public static let eventTooLarge = WireViolation.Code(rawValue: "eventTooLarge")
}
