/// The buffers of WHATWG HTML 9.2.6, and what each line does to them. Kept as bytes: only an event that
/// is handed on is decoded, and what is no UTF-8 in it is replaced.
struct EventStreamFields: Sendable {
    private var data: [UInt8] = []
    private var type: [UInt8] = []
    private var idBuffer: String
    /// The one of the last event dispatched.
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
        // One space after the colon is no part of the value. Without a colon the value is empty.
        let start = colon + 1 < line.count && line[colon + 1] == 0x20 ? colon + 2 : min(colon + 1, line.count)
        let value = UnsafeRawBufferPointer(rebasing: line[start...])
        // Names have their case; a comment has no name.
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

    /// The LF after the last line of data is not part of the event.
    private func check(_ limits: EventStreamLimits) throws(WireViolation) {
        guard max(0, data.count - 1) + type.count <= limits.eventSize else {
            throw .remote(.eventTooLarge, "WHATWG HTML 9.2.6")
        }
    }

    /// An empty line: the ID counts from now on, and the event is handed on if it has data.
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
