// SPDX-License-Identifier: Apache-2.0

// Splits bytes into lines and lines into events. Content type, reconnecting and time are handled elsewhere.

/// Parses text/event-stream (WHATWG HTML 9.2.6).
///
/// ```swift
/// var parser = EventStreamParser()
/// var consumed = 0
/// while let item = try parser.next(input, consumed: &consumed) { …; drop `consumed` bytes }
/// ```
///
/// The parser consumes all input: after `nil` the caller has nothing to keep. At the end of the body nothing remains to
/// be done: an event without the empty line after it may be incomplete and is discarded.
package struct EventStreamParser: Sendable {
    private let limits: EventStreamLimits
    /// The beginning of a line whose end has not arrived.
    private var line: [UInt8] = []
    private var isFirstLine = true
    /// True if the previous line ended in CR: an LF that follows belongs to it.
    private var skipsLineFeed = false
    private var fields: EventStreamFields
    private var hasFailed = false

    /// - Parameter lastEventID: the last event ID of the previous connection, if there was one. The specification
    ///   starts each stream without one; browsers carry it over, so that a server that sends no `id` at first is asked
    ///   for the same position again.
    package init(limits: EventStreamLimits = EventStreamLimits(), lastEventID: String = "") {
        self.limits = limits.clamped
        fields = EventStreamFields(lastEventID: lastEventID)
    }

    /// The last event ID, of dispatched events including those without data.
    package var lastEventID: String { fields.lastEventID }

    /// Returns the next event in `input`; `nil` when all of it was consumed.
    ///
    /// `consumed` is set on every call: the caller drops that many bytes from the front before the next call. Throws
    /// `eventLineTooLong` and `eventTooLarge`; after that, only `illegalState`.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(WireViolation) -> EventStreamItem? {
        consumed = 0
        guard !hasFailed else { throw .local(.illegalState, "WHATWG HTML 9.2.6") }
        do throws(WireViolation) {
            return try step(input, &consumed)
        } catch {
            hasFailed = true
            line = []
            fields = EventStreamFields(lastEventID: fields.lastEventID)
            throw error
        }
    }

    private mutating func step(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> EventStreamItem? {
        while consumed < input.count {
            if skipsLineFeed {
                skipsLineFeed = false
                if input[consumed] == .lf {
                    consumed += 1
                    continue
                }
            }
            let start = consumed
            let end = Self.endOfLine(input, start)
            guard line.count + (end - start) <= limits.lineSize else {
                throw .remote(.eventLineTooLong, "WHATWG HTML 9.2.5")
            }
            let piece = UnsafeRawBufferPointer(rebasing: input[start..<end])
            guard end < input.count else {
                line += piece
                consumed = end
                return nil
            }
            consumed = end + 1
            skipsLineFeed = input[end] == .cr
            if let item = try take(piece) { return item }
        }
        return nil
    }

    /// Processes one line, of which `piece` is the end.
    private mutating func take(_ piece: UnsafeRawBufferPointer) throws(WireViolation) -> EventStreamItem? {
        defer { isFirstLine = false }
        guard !line.isEmpty else { return try fields.take(withoutMark(piece), limits) }
        line += piece
        // Moved out, so that emptying the line does not copy it.
        var whole: [UInt8] = []
        swap(&whole, &line)
        let item = try whole.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
            try fields.take(withoutMark(UnsafeRawBufferPointer(bytes)), limits)
        }
        whole.removeAll(keepingCapacity: whole.capacity <= 16 * 1024)
        swap(&whole, &line)
        return item
    }

    /// Removes a byte order mark, which may begin the stream (WHATWG HTML 9.2.5).
    private func withoutMark(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) else { return line }
        return UnsafeRawBufferPointer(rebasing: line[3...])
    }

    /// Returns the index of the first CR or LF, or the end of `input`.
    private static func endOfLine(_ input: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var index = input.firstControl(from: start, to: input.count)
        while index < input.count, input[index] != .cr, input[index] != .lf {
            index = input.firstControl(from: index + 1, to: input.count)
        }
        return index
    }
}
