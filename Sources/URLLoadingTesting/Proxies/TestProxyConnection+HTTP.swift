// SPDX-License-Identifier: Apache-2.0

// The HTTP proxy: CONNECT (RFC 9110 §9.3.6), and requests with an absolute URL, which it forwards.

import FoundationEssentials
import URLLoading
import URLLoadingWire

extension TestProxyConnection {
    func serveHTTP() async throws(ConnectionEnded) {
        var codec = HTTP1Codec(role: .server)
        var request: HTTP1RequestHead?
        var body: [UInt8] = []
        if input.isEmpty { input += try await read() }
        try await applyFaults(.greeting)
        reading: while true {
            switch try next(&codec) {
            case (.request(let head), _):
                request = head
                if head.method == .connect { break reading }
            case (.data, let bytes): body += bytes
            case (.end, _): break reading
            case (nil, _): input += try await read()
            default: throw ConnectionEnded()
            }
        }
        guard let request else { throw ConnectionEnded() }
        let asked = record(request.method.rawValue, request.target, request.headers)
        try await applyFaults(.request)
        var answerFields = Headers()
        switch proxy.configuration.authorize?(asked) {
        case .refuse(let headers)?: return try await refuse(407, headers)
        case .allow(let headers)?: answerFields = headers
        case nil: if let refusal = refusal(request) { return try await refuse(refusal) }
        }
        guard request.method == .connect else { return try await forward(request, body, answerFields) }
        guard let origin = try? Target("http://" + request.target).origin,
            let address = try? SOCKSAddress(origin.host, port: origin.port)
        else { return try await refuse(400) }
        try await tunnel(
            to: address.host, origin.port,
            accepting: Array("HTTP/1.1 200 Connection established\r\n\(answerFields.lines)\r\n".utf8),
            refusing: Array("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nbad\n".utf8))
    }

    private func next(_ codec: inout HTTP1Codec) throws(ConnectionEnded) -> (HTTP1Event?, [UInt8]) {
        var consumed = 0
        let result = input.withUnsafeBytes { bytes in
            Result { () throws(WireViolation) in try codec.next(bytes, consumed: &consumed) }
        }
        guard case .success(let event) = result else { throw ConnectionEnded() }
        var data: [UInt8] = []
        if case .data(let range)? = event { data = Array(input[range]) }
        input.removeFirst(consumed)
        return (event, data)
    }

    private func refusal(_ request: HTTP1RequestHead) -> Int? {
        if case .refuse(let status) = fault { return status }
        guard let user = proxy.configuration.user else { return nil }
        let wanted = "Basic " + Data("\(user):\(proxy.configuration.password)".utf8).base64EncodedString()
        return request.headers[.proxyAuthorization] == wanted ? nil : 407
    }

    private func refuse(_ status: Int, _ headers: Headers? = nil) async throws(ConnectionEnded) {
        var text = "HTTP/1.1 \(status) \(Status(status)?.reasonPhrase ?? "")\r\nContent-Length: 8\r\n"
        if status == 407 { text += headers?.lines ?? "Proxy-Authenticate: Basic realm=\"test\"\r\n" }
        try await answer(Array((text + "\r\nrefused\n").utf8))
        if case .closeAfterRefusal = fault { throw ConnectionEnded() }
    }

    /// Fields between client and proxy that are not forwarded (RFC 9110 §7.6.1).
    private static let ownFields: [FieldName] = [
        .proxyAuthorization, .proxyConnection, .connection, .host, .contentLength, .transferEncoding, "Keep-Alive",
    ]

    private func forward(_ head: HTTP1RequestHead, _ body: [UInt8], _ answerFields: Headers)
        async throws(ConnectionEnded)
    {
        guard let url = URL(string: head.target), url.scheme == "http" else { return try await refuse(400) }
        var request = Request(url: url, method: head.method, headers: head.headers)
        for name in Self.ownFields { request.headers.remove(name) }
        request.headers["Via"] = "1.1 test"
        if !body.isEmpty { request.body = .data(Data(body)) }
        let answered: (Data, Response)
        do throws(LoadError) {
            answered = try await proxy.client.data(for: request, decisions: Self.delivering)
        } catch { return try await refuse(502) }
        guard let response = answered.1.http else { throw ConnectionEnded() }
        var codec = HTTP1Codec(role: .server)
        var output: [UInt8] = []
        var headers = response.headers
        for name in Self.ownFields { headers.remove(name) }
        for field in answerFields { headers.append(field.name, field.value) }
        do throws(WireViolation) {
            // Tell the codec about the request, so that it knows how the response may end.
            try Self.ask(&codec, head.method)
            let hasBody = head.method != .head && !response.status.forbidsContent
            try codec.sendResponse(
                status: response.status, headers: headers, framing: hasBody ? .length(Int64(answered.0.count)) : .none,
                into: &output)
        } catch { throw ConnectionEnded() }
        try await answer(output + answered.0)
    }

    private static let delivering: Decisions = {
        var decisions = Decisions()
        decisions.redirect = Decision { _ in .doNotFollow }
        return decisions
    }()

    private static func ask(_ codec: inout HTTP1Codec, _ method: URLLoading.Method) throws(WireViolation) {
        var consumed = 0
        let text = Array("\(method.rawValue) / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        _ = try text.withUnsafeBytes { bytes in
            Result { () throws(WireViolation) in try codec.next(bytes, consumed: &consumed) }
        }.get()
    }
}

extension Headers {
    fileprivate var lines: String { map { "\($0.name): \($0.value)\r\n" }.joined() }
}
