// SPDX-License-Identifier: Apache-2.0

// Processes complete heads and derives the framing of the body that follows.

extension HTTP1Codec {
    mutating func receiveHead(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> HTTP1Event? {
        if role == .server { try skipEmptyLines(input, &consumed) }
        guard input.count > consumed else { return nil }
        // A CR alone may be half of an empty line and does not begin a request.
        if role == .server, input.count - consumed == 1, input[consumed] == .cr { return nil }
        hasReceivedBytes = true
        try checkFirstBytes(input, consumed)
        guard let size = try findEnd(input, consumed) else { return nil }
        let head = consumed..<consumed + size
        let (lines, hasLineFeeds) = (scanner.lines, scanner.acceptsLineFeeds)
        consumed = head.upperBound
        scanner = HTTP1SectionScanner()
        guard role == .client else { return try receiveRequest(input, head, lines) }
        do throws(WireViolation) {
            // The parser relies on a CR before each LF.
            if hasLineFeeds { throw .remote(.bareLineFeed, "RFC 9112 2.2") }
            return try receiveResponse(input, head, lines)
        } catch {
            return try receiveRepaired(UnsafeRawBufferPointer(rebasing: input[head]), lines, error)
        }
    }

    private mutating func findEnd(_ input: UnsafeRawBufferPointer, _ start: Int) throws(WireViolation) -> Int? {
        func find() throws(WireViolation) -> Int? {
            try scanner.findEnd(
                in: input, from: start, limit: limits.headSize, maxLines: limits.fieldCount + 1, tooLarge: .headTooLarge
            )
        }
        do throws(WireViolation) {
            return try find()
        } catch {
            guard isTolerant, error.code == .bareLineFeed else { throw error }
            scanner.acceptLineFeeds()
            return try find()
        }
    }

    /// Skips empty lines before a request, as a server must (RFC 9112 §2.2); a client does not expect them.
    private mutating func skipEmptyLines(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) {
        while input.count - consumed >= 2, input[consumed] == .cr, input[consumed + 1] == .lf {
            // One empty line is tolerated for robustness, many are an attack; a few cover clients that end a body with
            // CRLF.
            exchange.emptyLineCount += 1
            guard exchange.emptyLineCount <= 4 else { throw .remote(.malformedRequestLine, "RFC 9112 2.2") }
            consumed += 2
        }
    }

    /// Recognises another protocol, such as SSH, FTP or TLS, by its first bytes. Waiting for the end of a head that
    /// never comes would turn the error into a timeout.
    private func checkFirstBytes(_ input: UnsafeRawBufferPointer, _ start: Int) throws(WireViolation) {
        guard role == .client else {
            guard ByteSet.token.contains(input[start]) else {
                throw .remote(.malformedRequestLine, at: 0, "RFC 9112 3")
            }
            return
        }
        let name: StaticString = "HTTP/"
        for index in 0..<min(name.utf8CodeUnitCount, input.count - start)
        where input[start + index] != name.utf8Start[index] {
            throw .remote(.notHTTP, at: index, "RFC 9112 4")
        }
    }

    private static func endOfLine(_ input: UnsafeRawBufferPointer, _ head: Range<Int>) -> Int {
        // The scanner has verified that a CR precedes.
        input.firstLineFeed(from: head.lowerBound, to: head.upperBound) - 1
    }

    // MARK: Client

    /// Reads a head that breaks the grammar, if it has one reading. Nothing follows it on its connection, and no tunnel
    /// or other protocol begins with it.
    private mutating func receiveRepaired(
        _ head: UnsafeRawBufferPointer, _ lines: Int, _ violation: WireViolation
    ) throws(WireViolation) -> HTTP1Event {
        guard isTolerant, HTTP1HeadRepair.isRepairable(violation.code) else { throw violation }
        let repair = try HTTP1HeadRepair(head)
        guard !repair.violations.isEmpty else { throw violation }
        mustClose = true
        return try repair.bytes.withUnsafeBytes { bytes in
            Result { () throws(WireViolation) in try receiveResponse(bytes, 0..<bytes.count, lines, repair) }
        }.get()
    }

    private mutating func receiveResponse(
        _ input: UnsafeRawBufferPointer, _ head: Range<Int>, _ lines: Int, _ repair: HTTP1HeadRepair? = nil
    ) throws(WireViolation) -> HTTP1Event {
        let lineEnd = Self.endOfLine(input, head)
        let line = try HTTP1StartLine.status(input, head.lowerBound..<lineEnd)
        let fields = try HTTP1FieldParser(
            input, section: lineEnd + 2..<head.upperBound - 2, lines: lines, role: role, messageStart: head.lowerBound)
        let response = HTTP1ResponseHead(
            status: line.status, reason: line.reason, version: line.version, headers: fields.headers,
            violations: repair.map { exchange.violations.adding(WireViolations($0.violations)) } ?? exchange.violations)
        if let violation = response.violations.all.first, line.status.code == 101 || endsInTunnel(line.status) {
            throw violation
        }
        if line.status.code == 101 { return try receiveUpgrade(response) }
        if line.status.kind == .informational { return try receiveInformational(response) }
        if endsInTunnel(line.status) {
            // Framing fields have no meaning in this response (RFC 9110 §9.3.6).
            switchProtocols()
            return .upgraded(response)
        }
        notePersistence(fields.headers, fields.flags, line.version)
        let framingVersion = repair?.readsChunksOfOldVersion == true ? .http11 : line.version
        try startResponseBody(line.status, fields.headers, fields.flags, framingVersion)
        return .response(response)
    }

    private func endsInTunnel(_ status: Status) -> Bool { exchange.isConnect && status.kind == .successful }

    private mutating func receiveUpgrade(_ response: HTTP1ResponseHead) throws(WireViolation) -> HTTP1Event {
        // HTTP/1.0 has no Upgrade.
        guard exchange.asksUpgrade, response.version >= .http11 else {
            throw .remote(.unexpectedUpgrade, "RFC 9110 7.8")
        }
        switchProtocols()
        return .upgraded(response)
    }

    private mutating func receiveInformational(_ response: HTTP1ResponseHead) throws(WireViolation) -> HTTP1Event {
        exchange.informationalCount += 1
        guard exchange.informationalCount <= limits.informationalCount else {
            throw .remote(.tooManyInformational, "RFC 9110 15.2")
        }
        exchange.violations = response.violations
        return .informational(response)
    }

    /// Determines the framing of the body in the order of RFC 9112 §6.3. Where no content is allowed, framing fields
    /// are ignored.
    private mutating func startResponseBody(
        _ status: Status, _ headers: Headers, _ flags: HTTP1FieldFlags, _ version: HTTPVersion
    ) throws(WireViolation) {
        if exchange.isHead || status.forbidsContent {
            receiving = .fixed(remaining: 0)
            return
        }
        switch try HTTP1Framing.framing(headers, flags, version) {
        case .length(let length): receiving = .fixed(remaining: length)
        case .chunked: receiving = .chunkHeader
        case .unmarked:
            receiving = .untilClose
            mustClose = true
        }
    }

    // MARK: Server

    private mutating func receiveRequest(
        _ input: UnsafeRawBufferPointer, _ head: Range<Int>, _ lines: Int
    ) throws(WireViolation) -> HTTP1Event {
        let lineEnd = Self.endOfLine(input, head)
        let line = try HTTP1StartLine.request(input, head.lowerBound..<lineEnd)
        let fields = try HTTP1FieldParser(
            input, section: lineEnd + 2..<head.upperBound - 2, lines: lines, role: role, messageStart: head.lowerBound)
        // RFC 9112 §3.2: a request with no Host, or several, is answered with 400.
        guard fields.flags.hostCount <= 1 else { throw .remote(.duplicateHost, "RFC 9112 3.2") }
        guard fields.flags.hostCount == 1 || line.version < .http11 else { throw .remote(.missingHost, "RFC 9112 3.2") }
        let hasLegalHost = fields.headers.withValueBytes(of: .host) { $0.allSatisfy { ByteSet.hostField.contains($0) } }
        guard hasLegalHost ?? true else { throw .remote(.malformedHost, "RFC 9112 3.2") }
        switch try HTTP1Framing.framing(fields.headers, fields.flags, line.version) {
        case .length(let length): receiving = .fixed(remaining: length)
        case .chunked: receiving = .chunkHeader
        case .unmarked: receiving = .fixed(remaining: 0)
        }
        exchange.isHead = line.method == .head
        exchange.isConnect = line.method == .connect
        exchange.asksUpgrade = fields.headers.contains(.upgrade)
        exchange.peerVersion = line.version
        notePersistence(fields.headers, fields.flags, line.version)
        return .request(
            HTTP1RequestHead(method: line.method, target: line.target, version: line.version, headers: fields.headers))
    }

    // MARK: Client and server

    /// Determines whether the connection persists (RFC 9112 §9.3).
    private mutating func notePersistence(_ headers: Headers, _ flags: HTTP1FieldFlags, _ version: HTTPVersion) {
        let options = flags.hasConnection ? HTTP1ConnectionOptions(headers) : nil
        if options?.close == true { mustClose = true }
        if version < .http11, options?.keepAlive != true { mustClose = true }
    }

    mutating func switchProtocols() {
        receiving = .switched
        sending = .switched
    }
}
