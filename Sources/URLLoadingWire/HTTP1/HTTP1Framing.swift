/// What a received head says about the length of what follows (RFC 9112 6.3).
enum HTTP1Framing {
    /// The one length all Content-Length fields agree on. `5, 5` and two equal fields are taken as
    /// one, which RFC 9112 6.3 allows; everything that is not 1*DIGIT below 2^63 is refused.
    static func contentLength(_ headers: Headers, _ party: WireViolation.Party) throws(WireViolation) -> Int64? {
        var length: Int64?
        var code: WireViolation.Code?
        headers.forEachRaw { name, value in
            guard code == nil, name.matches("content-length", in: 0..<name.count) else { return }
            code = combine(value, into: &length)
        }
        if let code { throw WireViolation(party, code, section: "RFC 9112 6.3") }
        return length
    }

    private static func combine(_ value: UnsafeRawBufferPointer, into length: inout Int64?) -> WireViolation.Code? {
        var start = 0
        for index in 0...value.count where index == value.count || value[index] == UInt8(ascii: ",") {
            guard let number = decimal(value, value.trimmed(start..<index)) else { return .malformedContentLength }
            if let length, length != number { return .conflictingContentLength }
            length = number
            start = index + 1
        }
        return nil
    }

    private static func decimal(_ value: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int64? {
        guard !range.isEmpty else { return nil }
        var number: Int64 = 0
        for index in range {
            guard value[index].isDigit else { return nil }
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(Int64(value[index] &- 0x30))
            if overflow || carry { return nil }
            number = sum
        }
        return number
    }

    /// Whether all Transfer-Encoding fields together say `chunked`, once, and nothing else. We never
    /// offer another coding (TE), so none may come; `identity` has been no coding since RFC 7230, and
    /// readers differ on what it means.
    static func isOnlyChunked(_ headers: Headers) -> Bool {
        var chunked = 0
        var others = 0
        headers.forEachRaw { name, value in
            guard name.matches("transfer-encoding", in: 0..<name.count) else { return }
            forEachListElement(of: value) { element in
                if value.matches("chunked", in: element) { chunked += 1 } else { others += 1 }
            }
        }
        return chunked == 1 && others == 0
    }

    /// The framing that the fields ask for, for messages that may have content.
    static func framing(
        _ headers: Headers, _ flags: HTTP1FieldFlags, _ version: HTTPVersion
    ) throws(WireViolation) -> Receive {
        guard flags.hasTransferEncoding else {
            guard flags.hasContentLength else { return .unmarked }
            return .length(try contentLength(headers, .remote) ?? 0)
        }
        // Faulty framing by RFC 9112 6.1; what HTTP/1.0 readers before us made of it is unknown.
        guard version >= .http11 else { throw .remote(.transferEncodingInOldVersion, "RFC 9112 6.1") }
        // RFC 9112 6.3 lets a client go by Transfer-Encoding. But only a confused or smuggling sender
        // writes both, and whoever goes by the other field ends the message elsewhere: refused.
        guard !flags.hasContentLength else { throw .remote(.transferEncodingWithContentLength, "RFC 9112 6.3") }
        guard isOnlyChunked(headers) else { throw .remote(.unsupportedTransferEncoding, "RFC 9112 6.1") }
        return .chunked
    }

    enum Receive: Equatable {
        case length(Int64)
        case chunked
        /// Neither field: until close for a response, no content for a request.
        case unmarked
    }
}

/// The options of Connection fields that mean something here (RFC 9110 7.6.1).
struct HTTP1ConnectionOptions: Equatable {
    var close = false
    var keepAlive = false
    var upgrade = false
    /// A field that frames the message was named, which would have the next hop remove it.
    var namesFraming = false

    init(_ headers: Headers) {
        var found = (close: false, keepAlive: false, upgrade: false, framing: false)
        headers.forEachRaw { name, value in
            guard name.matches("connection", in: 0..<name.count) else { return }
            forEachListElement(of: value) { element in
                if value.matches("close", in: element) { found.close = true }
                if value.matches("keep-alive", in: element) { found.keepAlive = true }
                if value.matches("upgrade", in: element) { found.upgrade = true }
                if value.matches("content-length", in: element) || value.matches("transfer-encoding", in: element)
                    || value.matches("host", in: element)
                {
                    found.framing = true
                }
            }
        }
        (close, keepAlive, upgrade, namesFraming) = found
    }
}
