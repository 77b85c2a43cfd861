// SPDX-License-Identifier: Apache-2.0

/// Fields shared by many requests, checked and serialised once.
///
/// ```swift
/// let fields = HTTP1PreparedFields(["Accept": "*/*", "User-Agent": "example"])
/// ```
///
/// Fields that route, frame or upgrade a request are excluded, because they depend on the request; and TE, because it
/// has to be named in Connection.
package final class HTTP1PreparedFields: Sendable {
    package let headers: Headers
    let bytes: [UInt8]
    let closesConnection: Bool

    /// Prepares fields; `nil` for fields that must be checked together with their request, or must not be sent.
    package init?(_ headers: Headers) {
        for name in [FieldName.host, .contentLength, .transferEncoding, .upgrade, .te] where headers.contains(name) {
            return nil
        }
        do throws(WireViolation) {
            try HTTP1FieldCheck.fields(headers)
            closesConnection = try HTTP1FieldCheck.connection(headers).close
        } catch {
            return nil
        }
        self.headers = headers
        var bytes: [UInt8] = []
        HTTP1Writer.fields(headers, &bytes)
        self.bytes = bytes
    }
}

extension HTTP1Codec {
    /// Writes the head of a request that has only prepared fields. Its parts were checked before: the target when it
    /// was created, the fields when they were prepared.
    package mutating func sendRequest(
        _ method: Method, to target: Target, _ fields: HTTP1PreparedFields, framing: HTTP1BodyFraming,
        into buffer: inout [UInt8]
    ) throws(WireViolation) {
        guard role == .client, sending == .idle, receiving == .idle, !mustClose else { throw Self.illegalState }
        guard method.isValid else { throw .local(.malformedMethod, "RFC 9110 9.1") }
        try checkVersion(framing)
        HTTP1Writer.requestLine(method, target.originForm, target.hostField, isOld: sendsOldVersion, &buffer)
        buffer += fields.bytes
        HTTP1Writer.framing(framing == .none && method.anticipatesContent ? .length(0) : framing, &buffer)
        HTTP1Writer.endOfSection(&buffer)
        startRequest(method, framing, closes: fields.closesConnection, asksUpgrade: false)
    }

    /// Throws for a body without a length in HTTP/1.0, which has no chunks (RFC 9112 §6.1).
    func checkVersion(_ framing: HTTP1BodyFraming) throws(WireViolation) {
        if sendsOldVersion, framing == .chunked { throw .local(.transferEncodingInOldVersion, "RFC 9112 6.1") }
    }

    /// Updates the state after the head of a request was written.
    mutating func startRequest(_ method: Method, _ framing: HTTP1BodyFraming, closes: Bool, asksUpgrade: Bool) {
        let isGet = method == .get
        exchange.isHead = !isGet && method == .head
        exchange.isConnect = !isGet && method == .connect
        exchange.asksUpgrade = asksUpgrade
        if closes || sendsOldVersion { mustClose = true }
        receiving = .head
        startBody(framing)
    }
}
