// Sending: what is asked for is checked first, then written; a refused message leaves no byte behind.

extension HTTP1Codec {
    /// Writes the head of a request after what `buffer` holds.
    ///
    /// - Parameters:
    ///   - target: The request target in the form that fits (RFC 9112 3.2).
    ///   - host: The value of Host, written first; a single Host among `headers` takes its place.
    ///   - defaults: Fields to add where `headers` has none of that name.
    ///   - framing: How the body that follows will end. `headers` may only agree with it.
    package mutating func sendRequest(
        method: Method, target: [UInt8], host: [UInt8], headers: Headers, defaults: Headers = Headers(),
        framing: HTTP1BodyFraming, into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard role == .client, sending == .idle, receiving == .idle, !mustClose else { throw Self.illegalState }
        guard method.isValid else { throw .local(.malformedMethod, "RFC 9110 9.1") }
        guard !target.isEmpty, target.allSatisfy({ ByteSet.visible.contains($0) }) else {
            throw .local(.malformedTarget, "RFC 9112 3.2")
        }
        guard framing != .untilClose else { throw .local(.illegalState, "RFC 9112 6.3") }
        try HTTP1FieldCheck.fields(headers)
        try HTTP1FieldCheck.fields(defaults)
        let host = try HTTP1FieldCheck.host(headers, else: host)
        let written = try HTTP1FieldCheck.framing(
            framing, headers, unlessSet: method.anticipatesContent ? 0 : nil)
        let options = try HTTP1FieldCheck.connection(headers, defaults)

        HTTP1Writer.requestLine(method, target, host, &buffer)
        HTTP1Writer.fields(headers, defaults, &buffer)
        HTTP1Writer.framing(written, &buffer)
        HTTP1Writer.endOfSection(&buffer)

        startRequest(
            method, framing, closes: options.close,
            asksUpgrade: options.upgrade && (headers.contains(.upgrade) || defaults.contains(.upgrade)))
    }

    /// Writes the head of a response after what `buffer` holds; an interim one may be followed by others.
    ///
    /// - Parameters:
    ///   - reason: `nil` for the registered phrase.
    ///   - framing: For HEAD and 304 what a GET would have had: the fields are written, no body follows.
    package mutating func sendResponse(
        status: Status, reason: String? = nil, headers: Headers, defaults: Headers = Headers(),
        framing: HTTP1BodyFraming = .none, into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard role == .server, sending == .idle else { throw Self.illegalState }
        let reason = reason ?? status.reasonPhrase
        guard !reason.utf8.contains(where: \.isForbiddenInValue) else {
            throw .local(.malformedStatusLine, "RFC 9112 4")
        }
        try HTTP1FieldCheck.fields(headers)
        try HTTP1FieldCheck.fields(defaults)
        if framing == .chunked, exchange.peerVersion < .http11 { throw .local(.illegalState, "RFC 9112 6.1") }
        let written = try responseFraming(status, framing, headers)
        let options = try HTTP1FieldCheck.connection(headers, defaults)

        HTTP1Writer.statusLine(status, reason, &buffer)
        HTTP1Writer.fields(headers, defaults, &buffer)
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
            // RFC 9110 8.6, RFC 9112 6.1: no framing field at all.
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
        // An answer before the request was understood: whatever still comes is not looked at.
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

    /// Writes what goes before `count` bytes of body, which the caller sends from where they are.
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

    /// Writes what goes after the bytes announced by `sendData`.
    package mutating func sendDataEnd(into buffer: inout [UInt8]) {
        guard sending == .insideChunk else { return }
        buffer.append(.cr)
        buffer.append(.lf)
        sending = .chunked
    }

    /// Ends the body. Trailers can only go with chunks.
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
