// SPDX-License-Identifier: Apache-2.0

// Sending: checks each message first, then writes it; a refused message writes no bytes.

extension HTTP1Codec {
    /// Appends the head of a request to `buffer`.
    ///
    /// - Parameters:
    ///   - target: the request target in the appropriate form (RFC 9112 §3.2).
    ///   - host: the value of Host, written first; replaced by a single Host in `headers`.
    ///   - framing: how the body that follows will end. Framing fields in `headers` must agree with it.
    package mutating func sendRequest(
        method: Method, target: [UInt8], host: [UInt8], headers: Headers, framing: HTTP1BodyFraming,
        into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard role == .client, sending == .idle, receiving == .idle, !mustClose else { throw Self.illegalState }
        guard method.isValid else { throw .local(.malformedMethod, "RFC 9110 9.1") }
        guard !target.isEmpty, target.allSatisfy({ ByteSet.visible.contains($0) }) else {
            throw .local(.malformedTarget, "RFC 9112 3.2")
        }
        guard framing != .untilClose else { throw .local(.illegalState, "RFC 9112 6.3") }
        try checkVersion(framing)
        try HTTP1FieldCheck.fields(headers)
        let host = try HTTP1FieldCheck.host(headers, else: host)
        let written = try HTTP1FieldCheck.framing(
            framing, headers, unlessSet: method.anticipatesContent ? 0 : nil)
        let options = try HTTP1FieldCheck.connection(headers)

        HTTP1Writer.requestLine(method, target, host, isOld: sendsOldVersion, &buffer)
        HTTP1Writer.fields(headers, &buffer)
        HTTP1Writer.framing(written, &buffer)
        // RFC 9110 §10.1.4: TE speaks to the next hop alone, and has to be named as an option of the connection.
        if headers.contains(.te), !options.te { HTTP1Writer.connectionTE(&buffer) }
        HTTP1Writer.endOfSection(&buffer)

        startRequest(
            method, framing, closes: options.close,
            asksUpgrade: options.upgrade && headers.contains(.upgrade))
    }

    /// Appends the head of a response to `buffer`; an interim one may be followed by others.
    /// - Parameter framing: for HEAD and 304 that of the GET response: the fields are written, no body follows.
    package mutating func sendResponse(
        status: Status, headers: Headers, framing: HTTP1BodyFraming = .none, into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard role == .server, sending == .idle else { throw Self.illegalState }
        try HTTP1FieldCheck.fields(headers)
        if framing == .chunked, exchange.peerVersion < .http11 { throw .local(.illegalState, "RFC 9112 6.1") }
        let written = try responseFraming(status, framing, headers)
        let options = try HTTP1FieldCheck.connection(headers)

        HTTP1Writer.statusLine(status, &buffer)
        HTTP1Writer.fields(headers, &buffer)
        HTTP1Writer.framing(written, &buffer)
        if framing == .untilClose, !options.close { HTTP1Writer.connectionClose(&buffer) }
        HTTP1Writer.endOfSection(&buffer)

        if options.close { mustClose = true }
        startResponse(status, framing)
    }

    private func responseFraming(
        _ status: Status, _ framing: HTTP1BodyFraming, _ headers: Headers
    ) throws(WireViolation) -> HTTP1BodyFraming {
        let isTunnel = exchange.isConnect && status.kind == .successful
        if status.kind == .informational || status.code == 204 || isTunnel {
            // RFC 9110 §8.6, RFC 9112 §6.1: no framing field is allowed.
            guard framing == .none, !headers.contains(.contentLength), !headers.contains(.transferEncoding) else {
                throw .local(.forbiddenField, "RFC 9110 8.6")
            }
            return .none
        }
        if framing == .none, exchange.isHead || status.code == 304 {
            return try HTTP1Framing.contentLength(headers, .local).map { .length($0) } ?? .none
        }
        return try HTTP1FieldCheck.framing(framing, headers, unlessSet: 0)
    }

    private mutating func startResponse(_ status: Status, _ framing: HTTP1BodyFraming) {
        if status.code == 101 || (exchange.isConnect && status.kind == .successful) { return switchProtocols() }
        if status.kind == .informational { return }
        let hasBody = !exchange.isHead && !status.forbidsContent
        startBody(hasBody ? framing : .none)
        // The response precedes the complete request, so the rest of the request is not read.
        if receiving == .head || receiving == .failed { mustClose = true }
    }

    mutating func startBody(_ framing: HTTP1BodyFraming) {
        switch framing {
        case .none: sending = .ended
        case .length(let length): sending = .fixed(remaining: length)
        case .chunked: sending = .chunked
        case .untilClose:
            sending = .untilClose
            mustClose = true
        }
    }

    /// Appends the bytes that precede `count` bytes of body; the caller sends the body itself from its own buffer.
    package mutating func sendData(count: Int, into buffer: inout [UInt8]) throws(WireViolation) {
        guard count >= 0 else { throw Self.illegalState }
        switch sending {
        case .fixed(let remaining):
            guard Int64(count) <= remaining else { throw .local(.bodyLengthMismatch, "RFC 9110 8.6") }
            sending = .fixed(remaining: remaining - Int64(count))
        case .chunked where count == 0: break  // An empty chunk would end the body.
        case .chunked:
            HTTP1Writer.chunkHeader(count, &buffer)
            sending = .insideChunk
        case .untilClose: break
        case .ended where count == 0: break
        default: throw Self.illegalState
        }
    }

    /// Appends the bytes that follow the data announced by `sendData`.
    package mutating func sendDataEnd(into buffer: inout [UInt8]) {
        guard sending == .insideChunk else { return }
        buffer.append(.cr)
        buffer.append(.lf)
        sending = .chunked
    }

    /// Ends the body. Trailers require chunked framing.
    package mutating func sendEnd(
        trailers: Headers = Headers(), into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard trailers.isEmpty || sending == .chunked else { throw .local(.forbiddenField, "RFC 9110 6.5.1") }
        switch sending {
        case .ended, .fixed(0), .untilClose: break
        case .fixed: throw .local(.bodyLengthMismatch, "RFC 9110 8.6")
        case .chunked:
            try HTTP1FieldCheck.trailers(trailers)
            HTTP1Writer.lastChunk(trailers, &buffer)
        default: throw Self.illegalState
        }
        sending = .ended
    }

    static var illegalState: WireViolation { .local(.illegalState, "RFC 9112 9.3") }
}
