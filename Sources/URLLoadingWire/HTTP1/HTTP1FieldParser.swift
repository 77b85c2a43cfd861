// SPDX-License-Identifier: Apache-2.0

/// The framing fields that were seen, so that most messages need no search.
struct HTTP1FieldFlags: Sendable {
    var hasContentLength = false
    var hasTransferEncoding = false
    var hasConnection = false
    var hostCount = 0
}

/// Parses field lines (RFC 9112 §5) into ``Headers``: the section is copied as a whole, and entries point into it.
struct HTTP1FieldParser {
    private let input: UnsafeRawBufferPointer
    private let start: Int
    private let isClient: Bool
    private(set) var headers = Headers()
    private(set) var flags = HTTP1FieldFlags()
    private var folds: [Range<Int>] = []
    /// True if the last field line was skipped; its continuation lines (RFC 9112 §5.2) are then skipped too.
    private var skipsContinuations = false

    /// Parses `section`: field lines with their CRLF, without the empty line. The scanner has verified that every LF
    /// follows a CR. Offsets in errors count from `messageStart`.
    init(
        _ input: UnsafeRawBufferPointer, section: Range<Int>, lines: Int, role: HTTP1Codec.Role, messageStart: Int
    ) throws(WireViolation) {
        self.input = input
        start = section.lowerBound
        isClient = role == .client
        guard !section.isEmpty else { return }
        headers.entries.reserveCapacity(lines)
        var position = section.lowerBound
        while position < section.upperBound {
            if input[position].isBlank {
                position = try fold(position, section.upperBound, messageStart)
            } else {
                position = try field(position, section.upperBound, messageStart)
            }
        }
        copy(section)
    }

    private mutating func copy(_ section: Range<Int>) {
        headers.bytes = [UInt8](unsafeUninitializedCapacity: section.count) { target, count in
            UnsafeMutableRawBufferPointer(target).copyMemory(from: UnsafeRawBufferPointer(rebasing: input[section]))
            count = section.count
        }
        for fold in folds {
            for index in fold { headers.bytes[index - start] = 0x20 }
        }
    }

    /// Parses one field line; returns where the next one begins.
    private mutating func field(_ begin: Int, _ end: Int, _ messageStart: Int) throws(WireViolation) -> Int {
        var index = input.firstOtherThanLetterOrDash(from: begin, to: end)
        while index < end, ByteSet.token.contains(input[index]) { index &+= 1 }
        guard index < end, input[index] == UInt8(ascii: ":"), index > begin else {
            throw nameViolation(at: index, end, messageStart)
        }
        let (lineEnd, isClean) = try valueEnd(index + 1, end, messageStart, isCookie: isCookie(begin..<index))
        skipsContinuations = !isClean
        guard isClean else { return lineEnd + 2 }
        let value = input.trimmed(index &+ 1..<lineEnd)
        note(begin..<index)
        headers.entries.append(
            Headers.Entry(
                name: Int32(truncatingIfNeeded: begin &- start), nameLength: Int32(truncatingIfNeeded: index &- begin),
                value: Int32(truncatingIfNeeded: value.lowerBound &- start),
                valueLength: Int32(truncatingIfNeeded: value.count),
                digest: FieldDigest.of(UnsafeRawBufferPointer(rebasing: input[begin..<index]))))
        return lineEnd + 2
    }

    /// Returns the end of the value that begins at `begin`, which is its CRLF. Other control characters are refused,
    /// above all NUL and CR (RFC 9110 §5.5). A Set-Cookie may contain any except CR, LF and NUL: it is then reported as
    /// not clean, and skipped.
    private func valueEnd(
        _ begin: Int, _ end: Int, _ messageStart: Int, isCookie: @autoclosure () -> Bool
    ) throws(WireViolation) -> (end: Int, isClean: Bool) {
        var lineEnd = input.firstControl(from: begin, to: end)
        var isClean = true
        while true {
            if lineEnd &+ 1 < end, input[lineEnd] == .cr, input[lineEnd &+ 1] == .lf { return (lineEnd, isClean) }
            guard lineEnd < end, ![.cr, .lf, 0].contains(input[lineEnd]), isCookie() else {
                throw .remote(.malformedFieldValue, at: lineEnd - messageStart, "RFC 9110 5.5")
            }
            isClean = false
            lineEnd = input.firstControl(from: lineEnd + 1, to: end)
        }
    }

    private func isCookie(_ name: Range<Int>) -> Bool { isClient && input.matches("set-cookie", in: name) }

    private func nameViolation(at index: Int, _ end: Int, _ messageStart: Int) -> WireViolation {
        var next = index
        while next < end, input[next].isBlank { next += 1 }
        let isBlankBeforeColon = next > index && next < end && input[next] == UInt8(ascii: ":")
        // RFC 9112 §5.1 requires a server to refuse this and a proxy to repair it. Both roles refuse it here, because
        // some parsers see the field and others do not.
        return isBlankBeforeColon
            ? .remote(.whitespaceBeforeColon, at: index - messageStart, "RFC 9112 5.1")
            : .remote(.malformedFieldName, at: index - messageStart, "RFC 9110 5.1")
    }

    /// Handles a line that continues the previous value. A user agent replaces the line break by spaces, a server
    /// refuses it (RFC 9112 §5.2); the first line cannot be a continuation (§2.2).
    private mutating func fold(_ begin: Int, _ end: Int, _ messageStart: Int) throws(WireViolation) -> Int {
        // Recipients disagree about a field that frames the message if it is continued.
        guard isClient, skipsContinuations || !headers.entries.isEmpty, !lastIsFraming else {
            throw .remote(.obsoleteFolding, at: begin - messageStart, "RFC 9112 5.2")
        }
        let (lineEnd, isClean) = try valueEnd(begin, end, messageStart, isCookie: skipsContinuations || lastIsCookie)
        if !isClean, !skipsContinuations {
            headers.entries.removeLast()
            skipsContinuations = true
        }
        guard !skipsContinuations, let last = headers.entries.indices.last else { return lineEnd + 2 }
        let continued = input.trimmed(begin..<lineEnd)
        if !continued.isEmpty {
            let valueStart = Int(headers.entries[last].value)
            if headers.entries[last].valueLength == 0 {
                headers.entries[last].value = Int32(truncatingIfNeeded: continued.lowerBound - start)
                headers.entries[last].valueLength = Int32(truncatingIfNeeded: continued.count)
            } else {
                let valueEnd = start + valueStart + Int(headers.entries[last].valueLength)
                folds.append(valueEnd..<continued.lowerBound)
                headers.entries[last].valueLength = Int32(truncatingIfNeeded: continued.upperBound - start - valueStart)
            }
        }
        return lineEnd + 2
    }

    private var lastIsCookie: Bool { lastName.map(isCookie) ?? false }

    private var lastIsFraming: Bool {
        guard !skipsContinuations, let name = lastName else { return false }
        return input.matches("content-length", in: name) || input.matches("transfer-encoding", in: name)
    }

    private var lastName: Range<Int>? {
        guard let last = headers.entries.last else { return nil }
        let name = start + Int(last.name)
        return name..<name + Int(last.nameLength)
    }

    @inline(__always)
    private mutating func note(_ name: Range<Int>) {
        switch name.count {
        case 4 where input.matches("host", in: name): flags.hostCount += 1
        case 10 where input.matches("connection", in: name): flags.hasConnection = true
        case 14 where input.matches("content-length", in: name): flags.hasContentLength = true
        case 17 where input.matches("transfer-encoding", in: name): flags.hasTransferEncoding = true
        default: break
        }
    }
}
