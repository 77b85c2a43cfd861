// SPDX-License-Identifier: Apache-2.0

/// Derives the length of a message's content from its head (RFC 9112 §6.3).
enum HTTP1Framing {
    /// Returns the length on which all Content-Length fields agree. `5, 5` and two equal fields count as one, which RFC
    /// 9112 §6.3 permits; anything except 1*DIGIT below 2^63 is refused.
    static func contentLength(_ headers: Headers, _ party: WireViolation.Party) throws(WireViolation) -> Int64? {
        var length: Int64?
        var code: WireViolation.Code?
        headers.forEachValue(of: "content-length") { value in
            if code == nil { code = combine(value, into: &length) }
        }
        if let code { throw WireViolation(party, code, section: "RFC 9112 6.3") }
        return length
    }

    private static func combine(_ value: UnsafeRawBufferPointer, into length: inout Int64?) -> WireViolation.Code? {
        var start = 0
        for index in 0..<value.count + 1 where index == value.count || value[index] == UInt8(ascii: ",") {
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

    /// Returns whether all Transfer-Encoding fields together contain exactly one coding, `chunked`. The client never
    /// offers another coding (TE), so none may be used; `identity` was abolished in RFC 7230, and parsers differ in how
    /// they treat it.
    static func isOnlyChunked(_ headers: Headers) -> Bool {
        var chunked = 0
        var others = 0
        headers.forEachValue(of: "transfer-encoding") { value in
            forEachListElement(of: value) { element in
                if value.matches("chunked", in: element) { chunked += 1 } else { others += 1 }
            }
        }
        return chunked == 1 && others == 0
    }

    /// Returns the framing of a message that may have content.
    static func framing(
        _ headers: Headers, _ flags: HTTP1FieldFlags, _ version: HTTPVersion
    ) throws(WireViolation) -> Receive {
        guard flags.hasTransferEncoding else {
            guard flags.hasContentLength else { return .unmarked }
            return .length(try contentLength(headers, .remote) ?? 0)
        }
        // Faulty framing (RFC 9112 §6.1): HTTP/1.0 intermediaries may have treated it in any way.
        guard version >= .http11 else { throw .remote(.transferEncodingInOldVersion, "RFC 9112 6.1") }
        // RFC 9112 §6.3 permits a client to use Transfer-Encoding. But only a faulty or malicious sender writes both
        // fields, and a parser that uses the other one ends the message elsewhere: refused.
        guard !flags.hasContentLength else { throw .remote(.transferEncodingWithContentLength, "RFC 9112 6.3") }
        guard isOnlyChunked(headers) else { throw .remote(.unsupportedTransferEncoding, "RFC 9112 6.1") }
        return .chunked
    }

    enum Receive: Equatable {
        case length(Int64)
        case chunked
        /// Neither field: a response ends with the connection, a request has no content.
        case unmarked
    }
}

/// The supported options of Connection fields (RFC 9110 §7.6.1).
struct HTTP1ConnectionOptions: Equatable {
    var close = false
    var keepAlive = false
    var upgrade = false
    var te = false
    /// True if a field that frames the message was named, which the next hop would remove.
    var namesFraming = false

    init(_ headers: Headers) {
        var found = (close: false, keepAlive: false, upgrade: false, te: false, framing: false)
        headers.forEachValue(of: "connection") { value in
            forEachListElement(of: value) { element in
                switch element.count {
                case 2 where value.matches("te", in: element): found.te = true
                case 5 where value.matches("close", in: element): found.close = true
                case 10 where value.matches("keep-alive", in: element): found.keepAlive = true
                case 7 where value.matches("upgrade", in: element): found.upgrade = true
                case 4 where value.matches("host", in: element): found.framing = true
                case 14 where value.matches("content-length", in: element): found.framing = true
                case 17 where value.matches("transfer-encoding", in: element): found.framing = true
                default: break
                }
            }
        }
        (close, keepAlive, upgrade, te, namesFraming) = found
    }
}

extension Headers {
    /// The names in the Connection field: of fields that are for this connection only (RFC 9110 §7.6.1).
    package var connectionOptions: [FieldName] {
        guard contains(.connection) else { return [] }
        return values(of: .connection).flatMap { $0.split(separator: ",") }
            .map { FieldName(String($0.filter { $0 != " " && $0 != "\t" })) }
    }
}
