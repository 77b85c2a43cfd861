// SPDX-License-Identifier: Apache-2.0

/// Recognises the delimiter lines between parts (RFC 2046 §5.1.1).
///
/// Stricter than the RFC, which accepts any line that begins with the boundary: only padding may follow it here, so
/// that `--ab` is not a delimiter for the boundary `a`, which matters for nested multiparts. Anything may follow the
/// `--` of the closing delimiter, as in the RFC: most senders end with it, so the byte that would tell may never come.
struct MultipartDelimiter: Sendable {
    enum Match: Equatable {
        case no
        /// The line may become a delimiter; more input is needed.
        case incomplete
        /// Another part begins at `end`.
        case next(end: Int)
        /// The closing delimiter; the epilogue begins at `end`.
        case close(end: Int)
    }

    /// The number of blanks allowed after the boundary. Gateways used to pad lines to 80 characters; a line with more
    /// is content, so that the amount of held-back data is bounded.
    static let maximumPadding = 128

    private var line: [UInt8]
    /// An alternative form of the delimiter, until the first delimiter was seen.
    private var alternative: [UInt8]?

    init(_ boundary: MultipartBoundary) {
        line = Array("--".utf8) + boundary.bytes
        // Many cameras state the whole line, including the dashes, as their boundary. The first line that is a
        // delimiter in either form decides.
        alternative = boundary.bytes.starts(with: "--".utf8) && boundary.bytes.count > 2 ? boundary.bytes : nil
    }

    /// Classifies the line that begins at `start`.
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

    /// Matches the rest of a delimiter: `--`, or blanks and the end of the line. A bare LF ends it too: see
    /// ``MultipartReader``.
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
