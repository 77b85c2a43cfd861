// SPDX-License-Identifier: Apache-2.0

/// Parses status lines (RFC 9112 §4) and request lines (§3).
enum HTTP1StartLine {
    /// Parses `HTTP/1.1 200 OK`, in `line` without its CRLF. The space after the code may be missing if there is no
    /// reason phrase: many servers omit it, and the meaning is clear.
    static func status(
        _ input: UnsafeRawBufferPointer, _ line: Range<Int>
    ) throws(WireViolation) -> (version: HTTPVersion, status: Status, reason: String) {
        let start = line.lowerBound
        let version = try version(input, start, line.upperBound, .malformedStatusLine)
        guard line.count >= 12, input[start + 8] == 0x20, let status = statusCode(input, start + 9),
            line.count == 12 || input[start + 12] == 0x20
        else { throw .remote(.malformedStatusLine, at: 8, "RFC 9112 4") }
        let reason = min(start + 13, line.upperBound)..<line.upperBound
        let control = input.firstControl(from: reason.lowerBound, to: reason.upperBound)
        guard control == reason.upperBound else {
            throw .remote(.malformedStatusLine, at: control - start, "RFC 9112 4")
        }
        return (version, status, text(input, reason, expected: status.reasonPhrase))
    }

    /// Parses `GET /a HTTP/1.1`, in `line` without its CRLF: single spaces, no other whitespace (RFC 9112 §3).
    static func request(
        _ input: UnsafeRawBufferPointer, _ line: Range<Int>
    ) throws(WireViolation) -> (method: Method, target: String, version: HTTPVersion) {
        var index = line.lowerBound
        while index < line.upperBound, ByteSet.token.contains(input[index]) { index += 1 }
        let method = line.lowerBound..<index
        guard !method.isEmpty, index < line.upperBound, input[index] == 0x20 else {
            throw .remote(.malformedRequestLine, at: index - line.lowerBound, "RFC 9112 3")
        }
        index += 1
        let targetStart = index
        while index < line.upperBound, ByteSet.visible.contains(input[index]) { index += 1 }
        let target = targetStart..<index
        guard !target.isEmpty, index < line.upperBound, input[index] == 0x20 else {
            throw .remote(.malformedRequestLine, at: index - line.lowerBound, "RFC 9112 3")
        }
        let version = try version(input, index + 1, line.upperBound, .malformedRequestLine)
        guard index + 9 == line.upperBound else {
            throw .remote(.malformedRequestLine, at: index + 9 - line.lowerBound, "RFC 9112 3")
        }
        return (Method(input.text(method)), input.text(target), version)
    }

    /// Parses `HTTP/` DIGIT `.` DIGIT (RFC 9112 §2.3). Any minor version of 1 is processed as 1.1, as RFC 9110 §2.5
    /// requires; another major version has another syntax.
    private static func version(
        _ input: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ code: WireViolation.Code
    ) throws(WireViolation) -> HTTPVersion {
        guard end - start >= 6, input[start] == UInt8(ascii: "H"), input[start + 1] == UInt8(ascii: "T"),
            input[start + 2] == UInt8(ascii: "T"), input[start + 3] == UInt8(ascii: "P"),
            input[start + 4] == UInt8(ascii: "/"), input[start + 5].isDigit
        else { throw .remote(code, "RFC 9112 2.3") }
        guard input[start + 5] == UInt8(ascii: "1") else { throw .remote(.unsupportedVersion, "RFC 9110 2.5") }
        guard end - start >= 8, input[start + 6] == UInt8(ascii: "."), input[start + 7].isDigit else {
            throw .remote(code, "RFC 9112 2.3")
        }
        return HTTPVersion(major: 1, minor: input[start + 7] &- 0x30)
    }

    private static func statusCode(_ input: UnsafeRawBufferPointer, _ start: Int) -> Status? {
        guard input[start].isDigit, input[start + 1].isDigit, input[start + 2].isDigit else { return nil }
        return Status(
            Int(input[start] &- 0x30) * 100 + Int(input[start + 1] &- 0x30) * 10 + Int(input[start + 2] &- 0x30))
    }

    /// Returns the reason phrase. If it is the registered one, the constant is reused instead of creating the same text
    /// again.
    private static func text(_ input: UnsafeRawBufferPointer, _ range: Range<Int>, expected: String) -> String {
        if range.count == expected.utf8.count {
            var index = range.lowerBound
            var isSame = true
            for byte in expected.utf8 {
                isSame = isSame && byte == input[index]
                index += 1
            }
            if isSame { return expected }
        }
        return input.text(range)
    }
}
