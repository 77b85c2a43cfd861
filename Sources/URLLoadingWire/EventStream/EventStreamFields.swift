// SPDX-License-Identifier: Apache-2.0

// In this folder: server-sent events, parsed

/// The buffers of an event stream (WHATWG HTML 9.2.6) and the effect of each line on them. Kept as bytes: only a
/// dispatched event is decoded, with invalid UTF-8 replaced.
struct EventStreamFields: Sendable {
    private var data: [UInt8] = []
    private var type: [UInt8] = []
    private var idBuffer: String
    /// The ID of the last dispatched event.
    private(set) var lastEventID: String

    init(lastEventID: String) {
        self.lastEventID = lastEventID
        idBuffer = lastEventID
    }

    mutating func take(_ line: UnsafeRawBufferPointer, _ limits: EventStreamLimits) throws(WireViolation)
        -> EventStreamItem?
    {
        if line.isEmpty { return dispatch() }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.count
        // One space after the colon is not part of the value. Without a colon the value is empty.
        let start = colon + 1 < line.count && line[colon + 1] == 0x20 ? colon + 2 : min(colon + 1, line.count)
        let value = UnsafeRawBufferPointer(rebasing: line[start...])
        // Field names are case-sensitive; a comment has an empty name.
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "data":
            data += value
            data.append(.lf)
            try check(limits)
        case "event":
            type = Array(value)
            try check(limits)
        case "id":
            if !value.contains(0) { idBuffer = String(decoding: value, as: UTF8.self) }
        case "retry":
            return Int64(strictDigits: value).map { .retry(milliseconds: $0) }
        default:
            break
        }
        return nil
    }

    /// Throws if the event exceeds its limit. The LF after the last line of data does not count.
    private func check(_ limits: EventStreamLimits) throws(WireViolation) {
        guard max(0, data.count - 1) + type.count <= limits.eventSize else {
            throw .remote(.eventTooLarge, "WHATWG HTML 9.2.6")
        }
    }

    /// Handles an empty line: updates the last event ID, and returns the event if it has data.
    private mutating func dispatch() -> EventStreamItem? {
        lastEventID = idBuffer
        defer {
            data.removeAll(keepingCapacity: data.capacity <= 16 * 1024)
            type = []
        }
        guard !data.isEmpty else { return nil }
        return .event(
            ServerSentEvent(
                type: type.isEmpty ? "message" : String(decoding: type, as: UTF8.self),
                data: String(decoding: data.dropLast(), as: UTF8.self), lastEventID: lastEventID))
    }
}
