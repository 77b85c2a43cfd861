// SPDX-License-Identifier: Apache-2.0

/// Checks fields before they are sent, against header injection and ambiguous framing. All violations are local.
enum HTTP1FieldCheck {
    /// Checks that names are tokens, and that values contain no CR, LF, NUL or other control character.
    static func fields(_ headers: Headers) throws(WireViolation) {
        guard !headers.isOverfull else { throw .local(.headTooLarge, "RFC 9110 5.4") }
        var code: WireViolation.Code?
        headers.forEachRaw { name, value in
            if let fault = fault(name, value) { code = fault }
        }
        if let code { throw .local(code, "RFC 9110 5.5") }
    }

    /// The reason why a field cannot be sent; `nil` if it can.
    static func fault(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> WireViolation.Code? {
        if value.firstControl(from: 0, to: value.count) != value.count { return .malformedFieldValue }
        return name.isEmpty || !name.allSatisfy({ ByteSet.token.contains($0) }) ? .malformedFieldName : nil
    }

    /// Returns the single Host value to send.
    static func host(_ headers: Headers, else host: [UInt8]) throws(WireViolation) -> [UInt8] {
        var count = 0
        var chosen = host
        headers.forEachRaw { name, value in
            guard name.matches("host", in: 0..<name.count) else { return }
            count += 1
            chosen = Array(value)
        }
        guard count <= 1 else { throw .local(.duplicateHost, "RFC 9112 3.2") }
        guard chosen.allSatisfy({ ByteSet.hostField.contains($0) }) else {
            throw .local(.malformedHost, "RFC 9110 7.2")
        }
        return chosen
    }

    /// Returns the framing to write, after checking that the caller's own fields agree with it.
    static func framing(
        _ framing: HTTP1BodyFraming, _ headers: Headers, unlessSet length: Int64?
    ) throws(WireViolation) -> HTTP1BodyFraming {
        if headers.contains(.transferEncoding) {
            guard framing == .chunked, HTTP1Framing.isOnlyChunked(headers) else {
                throw .local(.unsupportedTransferEncoding, "RFC 9112 6.1")
            }
        }
        let given = try givenLength(headers)
        switch framing {
        case .none:
            guard given ?? 0 == 0 else { throw .local(.conflictingContentLength, "RFC 9110 8.6") }
            return (given ?? length).map { .length($0) } ?? .none
        case .length(let length):
            guard length >= 0, given ?? length == length else {
                throw .local(.conflictingContentLength, "RFC 9110 8.6")
            }
            return framing
        case .chunked, .untilClose:
            guard given == nil else { throw .local(.conflictingContentLength, "RFC 9112 6.2") }
            return framing
        }
    }

    private static func givenLength(_ headers: Headers) throws(WireViolation) -> Int64? {
        guard headers.count(of: .contentLength) <= 1 else { throw .local(.conflictingContentLength, "RFC 9110 8.6") }
        return try HTTP1Framing.contentLength(headers, .local)
    }

    /// Returns the connection options. Refuses a field that frames the message, which the next hop would remove (RFC
    /// 9110 §7.6.1).
    static func connection(_ headers: Headers) throws(WireViolation) -> HTTP1ConnectionOptions {
        let options = HTTP1ConnectionOptions(headers)
        guard !options.namesFraming else { throw .local(.forbiddenField, "RFC 9110 7.6.1") }
        return options
    }

    /// Refuses trailers that frame, route or describe the message, because they would come too late (RFC 9110 §6.5.1).
    static func trailers(_ trailers: Headers) throws(WireViolation) {
        try fields(trailers)
        for name in [
            FieldName.contentLength, .transferEncoding, .host, .connection, .trailer, .te, .authorization,
            .proxyAuthorization, .cookie, .setCookie, .contentEncoding, .contentType, .contentRange,
        ] {
            guard !trailers.contains(name) else { throw .local(.forbiddenField, "RFC 9110 6.5.1") }
        }
    }
}

extension Headers {
    /// The name of the last field that cannot be sent, which is the one that `HTTP1FieldCheck.fields` refuses; `nil` if
    /// all can.
    package var lastMalformed: FieldName? {
        entries.indices.last { withField(at: $0) { HTTP1FieldCheck.fault($0, $1) != nil } }.map { name(at: $0) }
    }
}
