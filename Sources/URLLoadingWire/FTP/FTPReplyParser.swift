// SPDX-License-Identifier: Apache-2.0

/// Parses the replies of an FTP server (RFC 959 §4.2). Lines end in CRLF; a bare LF is accepted too, because servers
/// send it.
///
/// ```swift
/// var parser = FTPReplyParser()
/// while let reply = try parser.next(input, consumed: &consumed) { … }
/// ```
/// The parser consumes all input except the bytes after a complete reply.
package struct FTPReplyParser: Sendable {
    private let limit: Int
    private var line: [UInt8] = []
    private var lines: [String] = []
    private var code: Int?
    private var size = 0
    private var hasFailed = false

    /// - Parameter limit: the size of one reply in bytes, all lines together; at least 1.
    package init(limit: Int = 64 * 1024) { self.limit = max(1, limit) }

    /// True if part of a reply has arrived.
    package var isInReply: Bool { size > 0 }

    package mutating func next(_ input: UnsafeRawBufferPointer, consumed: inout Int) throws(WireViolation) -> FTPReply?
    {
        guard !hasFailed else { throw .local(.illegalState, "RFC 959 4.2") }
        do throws(WireViolation) {
            while consumed < input.count {
                let byte = input[consumed]
                consumed += 1
                size += 1
                guard size <= limit else { throw .remote(.ftpReplyTooLarge, "RFC 959 4.2") }
                guard byte == .lf else {
                    line.append(byte)
                    // A peer that does not speak FTP is recognised by its first bytes.
                    if code == nil, lines.isEmpty, line.count <= 3, !byte.isDigit { throw Self.malformed }
                    continue
                }
                if let reply = try endOfLine() { return reply }
            }
            return nil
        } catch {
            hasFailed = true
            throw error
        }
    }

    private mutating func endOfLine() throws(WireViolation) -> FTPReply? {
        if line.last == .cr { line.removeLast() }
        defer { line.removeAll(keepingCapacity: true) }
        let start = Self.code(line)
        let mark = line.count > 3 ? line[3] : nil
        guard let code else {
            guard let start, 100...599 ~= start else { throw Self.malformed }
            guard mark == UInt8(ascii: "-") else {
                // A bare code is a complete reply without text: servers send it, and it does not begin a multi-line
                // reply.
                guard mark == UInt8(ascii: " ") || mark == nil else { throw Self.malformed }
                return whole(start, line.dropFirst(4))
            }
            code = start
            lines = [Self.text(line.dropFirst(4))]
            return nil
        }
        // Only the same code followed by a space ends the reply; lines in between may begin with any number, or be the
        // bare code.
        guard start == code, mark == UInt8(ascii: " ") else {
            let repeatsCode = start == code && mark == UInt8(ascii: "-")
            lines.append(Self.text(repeatsCode ? line.dropFirst(4) : line[...]))
            return nil
        }
        return whole(code, line.dropFirst(4))
    }

    private mutating func whole(_ code: Int, _ text: ArraySlice<UInt8>) -> FTPReply {
        defer { (self.code, lines, size) = (nil, [], 0) }
        return FTPReply(code, lines + [Self.text(text)])
    }

    private static func code(_ line: [UInt8]) -> Int? {
        guard line.count >= 3, line[..<3].allSatisfy(\.isDigit) else { return nil }
        return line[..<3].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    private static var malformed: WireViolation { .remote(.malformedFTPReply, "RFC 959 4.2") }
}
