// SPDX-License-Identifier: Apache-2.0

/// An item of a stream of server-sent events.
package enum EventStreamItem: Sendable, Hashable {
    /// An event to dispatch.
    case event(ServerSentEvent)
    /// The reconnection time stated by the server, in milliseconds, 0 or more. The caller that waits decides how far to
    /// respect it.
    case retry(milliseconds: Int64)
}

/// A server-sent event (WHATWG HTML 9.2.6).
///
/// ```swift
/// ServerSentEvent(type: "price", data: "12.50", lastEventID: "81")
/// ```
public struct ServerSentEvent: Sendable, Hashable {
    /// The event's type; `message` unless the server named another one.
    public var type: String
    /// The lines of data, joined by LF, with invalid UTF-8 replaced.
    public var data: String
    /// The ID to send as Last-Event-ID when reconnecting. If this event had none, that of an earlier event; empty if
    /// there was none at all.
    public var lastEventID: String

    /// Creates an event, for tests and stubs.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}

/// Limits of what a peer can make the parser hold, in bytes.
package struct EventStreamLimits: Sendable, Hashable {
    /// The size of one line without its end, including comments. Senders put whole documents into one line of JSON.
    package var lineSize = 1 << 20
    /// The size of data and type of one event.
    package var eventSize = 8 << 20

    package init() {}

    /// The limits restricted to a range in which sums cannot overflow.
    var clamped: EventStreamLimits {
        var limits = self
        limits.lineSize = min(max(0, lineSize), 1 << 30)
        limits.eventSize = min(max(0, eventSize), 1 << 30)
        return limits
    }
}

extension WireViolation.Code {
    /// A line of a server-sent event stream exceeds the limit.
    public static let eventLineTooLong = WireViolation.Code(rawValue: "eventLineTooLong")
    /// A server-sent event exceeds the limit.
    public static let eventTooLarge = WireViolation.Code(rawValue: "eventTooLarge")
}
