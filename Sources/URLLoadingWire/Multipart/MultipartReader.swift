// SPDX-License-Identifier: Apache-2.0

// Finds the beginning and end of parts. The meaning of parts (byteranges, form-data, x-mixed-replace) and I/O are
// handled elsewhere.

/// An event that the reader found in its input.
package enum MultipartEvent: Sendable, Equatable {
    /// A part begins. It may have no fields.
    case part(Headers)
    /// Content of the part: its range in the input of this call. Never empty.
    case data(Range<Int>)
    /// The part is complete.
    case partEnd
    /// The closing delimiter: there are no more parts.
    case end
}

/// A multipart body of any subtype as bytes and events (RFC 2046 §5.1).
///
/// ```swift
/// var reader = MultipartReader(boundary: try MultipartBoundary(contentType: type))
/// var consumed = 0
/// while let event = try reader.next(input, consumed: &consumed) { …; drop `consumed` bytes }
/// // …more input, and at its end:
/// try reader.receiveEnd()
/// ```
///
/// The reader holds no bytes. The caller keeps unconsumed bytes at the front of the next input: never more than the
/// fields of one part, or a delimiter with its padding, and the bytes that arrived with them.
///
/// A part ends at the next delimiter, and is complete only when that has arrived. A reader of camera frames can finish
/// sooner by counting the part's Content-Length.
///
/// Unlike in HTTP1Codec, lines that end in a bare LF are accepted: many cameras send them, and HTTP frames the message,
/// so a parser that reads the parts differently still ends the message at the same byte. A CR before such an LF belongs
/// to the line break: senders that mix the two are more common than parts that end in CR.
package struct MultipartReader: Sendable {
    private enum State {
        case preamble, head, content
        /// The closing delimiter was consumed, and the event `end` is still to be returned.
        case closed
        case epilogue, failed
    }

    private let limits: MultipartLimits
    private var delimiter: MultipartDelimiter
    private var state = State.preamble
    /// True if the next byte begins a line. The empty line after the fields may also be the one that belongs to a
    /// delimiter (RFC 2046 §5.1.1: a part need not have a body), and the first delimiter has none before it.
    private var isAtLineStart = true
    private var scanner = MultipartHeadScanner()
    private var parts = 0
    private var skipped = 0

    package init(boundary: MultipartBoundary, limits: MultipartLimits = MultipartLimits()) {
        delimiter = MultipartDelimiter(boundary)
        self.limits = limits.clamped
    }

    /// Whether the closing delimiter was seen.
    package var isComplete: Bool { state == .epilogue || state == .closed }

    /// Returns the next event in `input`, the bytes not consumed so far; `nil` if more input is needed.
    ///
    /// `consumed` is set on every call, also with `nil`: the caller drops that many bytes from the front before the
    /// next call, after using a range of data. After a violation it throws only `illegalState`.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(WireViolation) -> MultipartEvent? {
        consumed = 0
        do throws(WireViolation) {
            return try step(input, &consumed)
        } catch {
            state = .failed
            throw error
        }
    }

    /// Reports the end of the input. Throws `truncatedMultipart` if the closing delimiter is missing; a caller should
    /// ignore that for multipart/x-mixed-replace, which ends by closing the connection.
    package mutating func receiveEnd() throws(WireViolation) {
        guard state != .failed else { throw .local(.illegalState, "RFC 2046 5.1") }
        guard isComplete else {
            state = .failed
            throw .remote(.truncatedMultipart, "RFC 2046 5.1.1")
        }
    }

    private mutating func step(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> MultipartEvent? {
        while true {
            switch state {
            case .preamble: guard try skipPreamble(input, &consumed) else { return nil }
            case .head:
                guard let (headers, size) = try scanner.fields(in: input, from: consumed, limits) else { return nil }
                consumed += size
                state = .content
                isAtLineStart = true
                return .part(headers)
            case .content: return try content(input, &consumed)
            case .closed:
                state = .epilogue
                return .end
            case .epilogue:
                try skip(input.count - consumed, limits.epilogueSize, .multipartEpilogueTooLarge)
                consumed = input.count
                return nil
            case .failed: throw .local(.illegalState, "RFC 2046 5.1")
            }
        }
    }

    /// Skips the preamble; returns whether the first delimiter was found.
    private mutating func skipPreamble(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> Bool {
        while true {
            if isAtLineStart {
                let match = delimiter.match(input, at: consumed)
                if match == .incomplete { return false }
                if try begin(match, &consumed) { return true }
            }
            let index = input.firstLineFeed(from: consumed, to: input.count)
            isAtLineStart = index < input.count
            let end = isAtLineStart ? index + 1 : index
            try skip(end - consumed, limits.preambleSize, .multipartPreambleTooLarge)
            consumed = end
            if !isAtLineStart { return false }
        }
    }

    private mutating func skip(_ count: Int, _ limit: Int, _ code: WireViolation.Code) throws(WireViolation) {
        skipped += count
        guard skipped <= limit else { throw .remote(code, "RFC 2046 5.1.1") }
    }

    /// Consumes a delimiter; returns whether there was one.
    private mutating func begin(_ match: MultipartDelimiter.Match, _ consumed: inout Int) throws(WireViolation) -> Bool
    {
        switch match {
        case .no, .incomplete: return false
        case .close(let end):
            consumed = end
            skipped = 0
            state = .closed
        case .next(let end):
            parts += 1
            guard parts <= limits.partCount else { throw .remote(.tooManyParts, "RFC 2046 5.1") }
            consumed = end
            scanner = MultipartHeadScanner()
            state = .head
        }
        return true
    }

    /// Returns content up to a possible delimiter or the line break before it.
    private mutating func content(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> MultipartEvent? {
        if isAtLineStart {
            let match = delimiter.match(input, at: consumed)
            if match == .incomplete { return nil }
            if try begin(match, &consumed) { return .partEnd }
            isAtLineStart = false
        }
        let start = consumed
        var index = input.firstLineFeed(from: start, to: input.count)
        while index < input.count {
            let match = delimiter.match(input, at: index + 1)
            if match != .no {
                // The line break before a delimiter belongs to it (RFC 2046 §5.1.1).
                let end = index > start && input[index - 1] == .cr ? index - 1 : index
                if end > start { return data(start..<end, &consumed) }
                return try begin(match, &consumed) ? .partEnd : nil
            }
            index = input.firstLineFeed(from: index + 1, to: input.count)
        }
        let end = input.count > start && input[input.count - 1] == .cr ? input.count - 1 : input.count
        return end > start ? data(start..<end, &consumed) : nil
    }

    private func data(_ range: Range<Int>, _ consumed: inout Int) -> MultipartEvent {
        consumed = range.upperBound
        return .data(range)
    }
}
