/// Tells the lines between parts from everything else (RFC 2046 5.1.1).
///
/// The RFC would be content with a line that begins with the boundary; here nothing but padding may
/// follow it, so that `--ab` is no delimiter where the boundary is `a`, as with one multipart in another.
struct MultipartDelimiter: Sendable {
    enum Match: Equatable {
        case no
        /// It may become one: more input tells.
        case incomplete
        /// Another part begins at `end`.
        case next(end: Int)
        /// No part follows; the epilogue begins at `end`.
        case close(end: Int)
    }

    /// Blanks after the boundary, a count. Gateways once filled lines up to 80; with more the line is
    /// content, so that what is held back is bounded.
    static let maximumPadding = 128

    private var line: [UInt8]
    /// Another spelling of the line, until one was seen.
    private var alternative: [UInt8]?

    init(_ boundary: MultipartBoundary) {
        line = Array("--".utf8) + boundary.bytes
        // Many cameras name the whole line, dashes and all, as their boundary. The first line that is
        // a delimiter one way or the other decides.
        alternative = boundary.bytes.starts(with: "--".utf8) && boundary.bytes.count > 2 ? boundary.bytes : nil
    }

    /// What the line that begins at `start` is.
    mutating func match(_ input: UnsafeRawBufferPointer, at start: Int) -> Match {
        let match = Self.match(line, input, start)
        guard let other = alternative, match == .no else {
            if match != .incomplete, match != .no { alternative = nil }
            return match
        }
        let otherMatch = Self.match(other, input, start)
        if otherMatch != .incomplete, otherMatch != .no {
            line = other
            alternative = nil
        }
        return otherMatch
    }

    private static func match(_ line: [UInt8], _ input: UnsafeRawBufferPointer, _ start: Int) -> Match {
        let available = min(line.count, input.count - start)
        for index in 0..<available where input[start + index] != line[index] { return .no }
        guard available == line.count else { return .incomplete }
        return afterBoundary(input, start + line.count)
    }

    /// `--`, or blanks and the end of the line. LF alone ends it as well: see ``MultipartReader``.
    private static func afterBoundary(_ input: UnsafeRawBufferPointer, _ start: Int) -> Match {
        guard start < input.count else { return .incomplete }
        if input[start] == UInt8(ascii: "-") {
            guard start + 1 < input.count else { return .incomplete }
            return input[start + 1] == UInt8(ascii: "-") ? .close(end: start + 2) : .no
        }
        var index = start
        while index < input.count, index - start < maximumPadding, input[index].isBlank { index += 1 }
        if index < input.count, input[index] == .cr { index += 1 }
        guard index < input.count else { return .incomplete }
        return input[index] == .lf ? .next(end: index + 1) : .no
    }
}
