// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Messages that are written, and messages that are refused.
@Suite struct SendTests {
    func sent(
        _ method: Method = .get, _ target: String = "/", host: String = "h", _ headers: Headers = [:],
        _ framing: HTTP1BodyFraming = .none
    ) throws -> String {
        var codec = HTTP1Codec(role: .client)
        var output = bytes("before|")
        defer { if output.count == 7 { #expect(codec.reuse == .yes) } }
        do throws(WireViolation) {
            try codec.sendRequest(
                method: method, target: bytes(target), host: bytes(host), headers: headers,
                framing: framing, into: &output)
        } catch {
            #expect(output == bytes("before|"), "a refused message leaves no byte")
            #expect(error.party == .local)
            throw error
        }
        return String(decoding: output.dropFirst(7), as: UTF8.self)
    }

    @Test("Request heads are written") func heads() throws {
        #expect(try sent() == "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(
            try sent(.get, "/a?b", [.accept: "*/*", "X": " \u{e9}\t "])
                == "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nX: \u{e9}\r\n\r\n")
        #expect(try sent(.post) == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
        #expect(try sent(.put, "/", [:], .length(1_234_567_890)).hasSuffix("\r\nContent-Length: 1234567890\r\n\r\n"))
        #expect(try sent(.put, "/", [:], .chunked).hasSuffix("\r\nTransfer-Encoding: chunked\r\n\r\n"))
        #expect(try sent(.get, "/", ["HOST": "other:1"]) == "GET / HTTP/1.1\r\nHost: other:1\r\n\r\n")
        #expect(try sent("X-Y", "*") == "X-Y * HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    @Test("TE is named as a connection option, once (RFC 9110 10.1.4)") func te() throws {
        let start = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n"
        #expect(try sent(.get, "/", [.te: "trailers"]) == start + "Connection: TE\r\n\r\n")
        for option in ["TE", "close, te"] {
            #expect(
                try sent(.get, "/", [.te: "trailers", .connection: option])
                    == start + "Connection: \(option)\r\n\r\n")
        }
        #expect(
            try sent(.get, "/", [.te: "trailers", .connection: "close"])
                == start + "Connection: close\r\nConnection: TE\r\n\r\n")
        // Fields that are written once for many requests cannot be completed by Connection.
        #expect(HTTP1PreparedFields([.te: "trailers"]) == nil && HTTP1PreparedFields([.accept: "*/*"]) != nil)
    }

    /// The caller's framing fields must agree with the body (security 44).
    @Test("Framing fields that contradict the body are refused (security 44)") func framing() throws {
        #expect(try sent(.put, "/", ["content-length": "5"], .length(5)).hasSuffix("h\r\nContent-Length: 5\r\n\r\n"))
        #expect(try sent(.get, "/", ["content-length": "0"]).hasSuffix("h\r\nContent-Length: 0\r\n\r\n"))
        #expect(
            try sent(.put, "/", [.transferEncoding: "Chunked"], .chunked).hasSuffix(
                "h\r\nTransfer-Encoding: chunked\r\n\r\n"))
        let twice: Headers = [.contentLength: "5", "content-length": "5"]
        let refusals: [(Headers, HTTP1BodyFraming, WireViolation.Code)] = [
            ([.contentLength: "5"], .length(6), .conflictingContentLength),
            (twice, .length(5), .conflictingContentLength),
            ([.contentLength: "5"], .none, .conflictingContentLength),
            ([.contentLength: "5"], .chunked, .conflictingContentLength),
            ([.contentLength: "x"], .length(5), .malformedContentLength),
            ([.contentLength: "5, 6"], .length(5), .conflictingContentLength),
            ([:], .length(-1), .conflictingContentLength), ([:], .untilClose, .illegalState),
            ([.transferEncoding: "chunked"], .length(5), .unsupportedTransferEncoding),
            ([.transferEncoding: "chunked"], .none, .unsupportedTransferEncoding),
            ([.transferEncoding: "gzip, chunked"], .chunked, .unsupportedTransferEncoding),
            ([.transferEncoding: "chunked", "transfer-encoding": "chunked"], .chunked, .unsupportedTransferEncoding),
            ([.host: "a", "host": "a"], .none, .duplicateHost), ([.host: "a, b"], .none, .malformedHost),
            ([.connection: "close, Content-Length"], .none, .forbiddenField),
            ([.connection: "host"], .none, .forbiddenField),
        ]
        for (headers, framing, code) in refusals {
            #expect(violation { _ = try sent(.put, "/", headers, framing) } == code, "\(headers) \(framing)")
        }
    }

    /// A control character from the caller is refused in every place (security 24, 43).
    @Test("Control characters are refused (security 24, 43)") func controls() {
        for bad in ["\r", "\n", "\0", "\r\n", "\u{7f}", "\u{1b}"] {
            #expect(violation { _ = try sent(.get, "/a\(bad)b") } == .malformedTarget)
            #expect(violation { _ = try sent(Method("GET\(bad)X")) } == .malformedMethod)
            #expect(violation { _ = try sent(.get, "/", host: "h\(bad)x") } == .malformedHost)
            #expect(violation { _ = try sent(.get, "/", [.cookie: "a\(bad)b"]) } == .malformedFieldValue)
            #expect(violation { _ = try sent(.get, "/", [FieldName("A\(bad)"): "b"]) } == .malformedFieldName)
            #expect(violation { _ = try sent(.get, "/", [.accept: "a\(bad)b"]) } == .malformedFieldValue)
        }
        #expect(violation { _ = try sent(.get, "/a b") } == .malformedTarget)
        #expect(violation { _ = try sent(.get, "/\u{e9}") } == .malformedTarget)
        #expect(violation { _ = try sent(.get, "") } == .malformedTarget)
        #expect(violation { _ = try sent("") } == .malformedMethod)
        #expect(violation { _ = try sent("G T") } == .malformedMethod)
        for name in ["", "A B", "A:", "\u{e9}", "A,B"] {
            #expect(violation { _ = try sent(.get, "/", [FieldName(name): "b"]) } == .malformedFieldName)
        }
        for host in ["a/b", "u@a", "a b", "a?b", "a#b", "a\\b", "\u{e9}", "a,b"] {
            #expect(violation { _ = try sent(.get, "/", host: host) } == .malformedHost)
        }
    }

    @Test("Bodies are framed by length or in chunks") func bodies() throws {
        var codec = HTTP1Codec(role: .client)
        var output: [UInt8] = []
        try codec.sendRequest(
            method: .post, target: bytes("/"), host: bytes("h"), headers: [:], framing: .chunked, into: &output)
        output = []
        for count in [0, 1, 15, 16, 255, 256, 65535, 1 << 40] {
            try codec.sendData(count: count, into: &output)
            codec.sendDataEnd(into: &output)
        }
        #expect(violation { try codec.sendEnd(trailers: [.host: "x"], into: &output) } == .forbiddenField)
        #expect(violation { try codec.sendEnd(trailers: ["A": "\n"], into: &output) } == .malformedFieldValue)
        try codec.sendEnd(trailers: ["A": "b"], into: &output)
        let sizes = ["1", "F", "10", "FF", "100", "FFFF", "10000000000"]
        #expect(String(decoding: output, as: UTF8.self) == sizes.map { "\($0)\r\n\r\n" }.joined() + "0\r\nA: b\r\n\r\n")
        #expect(violation { try codec.sendData(count: 1, into: &output) } == .illegalState)
    }

    @Test("A request of HTTP/1.0 says so, is the last of its connection, and has no chunks") func oldVersion() throws {
        var output: [UInt8] = []
        for framing in [HTTP1BodyFraming.none, .length(3)] {
            var codec = HTTP1Codec(role: .client, sendsOldVersion: true)
            output = []
            try codec.sendRequest(
                method: .post, target: bytes("/"), host: bytes("h"), headers: [:], framing: framing, into: &output)
            #expect(String(decoding: output, as: UTF8.self).hasPrefix("POST / HTTP/1.0\r\nHost: h\r\n"))
            #expect(codec.reuse == .never)
        }
        var codec = HTTP1Codec(role: .client, sendsOldVersion: true)
        output = []
        let refused = violation {
            try codec.sendRequest(
                method: .post, target: bytes("/"), host: bytes("h"), headers: [:], framing: .chunked, into: &output)
        }
        #expect(refused == .transferEncodingInOldVersion && output.isEmpty)
    }

    @Test("A body must have its declared length") func bodyLengths() throws {
        var codec = HTTP1Codec(role: .client)
        var output: [UInt8] = []
        try codec.sendRequest(
            method: .post, target: bytes("/"), host: bytes("h"), headers: [:], framing: .length(3), into: &output)
        output = []
        try codec.sendData(count: 2, into: &output)
        #expect(violation { try codec.sendEnd(into: &output) } == .bodyLengthMismatch)
        #expect(violation { try codec.sendData(count: 2, into: &output) } == .bodyLengthMismatch)
        #expect(violation { try codec.sendData(count: -1, into: &output) } == .illegalState)
        try codec.sendData(count: 1, into: &output)
        try codec.sendEnd(into: &output)
        #expect(output.isEmpty && codec.sending == .ended)
    }

    @Test("A Connection: close of the caller is honoured") func closeIsHonoured() throws {
        let codec = try client(headers: [.connection: "close"])
        let result = runAllSplits(codec, bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        #expect(result.reuse == .never && result.violation == nil)
    }

    @Test("Responses are written") func responses() throws {
        func respond(
            to request: String, _ status: Status, _ headers: Headers = [:], _ framing: HTTP1BodyFraming = .none
        ) throws -> String {
            var codec = HTTP1Codec(role: .server)
            var consumed = 0
            _ = try codec.next(bytes(request), &consumed)
            var output: [UInt8] = []
            try codec.sendResponse(status: status, headers: headers, framing: framing, into: &output)
            return String(decoding: output, as: UTF8.self)
        }
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(try respond(to: get, .ok) == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        #expect(try respond(to: get, .ok, [:], .untilClose) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        #expect(try respond(to: head, .ok, [.contentLength: "7"]) == "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
        #expect(try respond(to: head, .ok, [:], .chunked) == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(try respond(to: get, .notModified) == "HTTP/1.1 304 Not Modified\r\n\r\n")
        #expect(try respond(to: get, .`continue`) == "HTTP/1.1 100 Continue\r\n\r\n")
        #expect(violation { _ = try respond(to: get, .noContent, [.contentLength: "0"]) } == .forbiddenField)
        #expect(violation { _ = try respond(to: get, .ok, ["A": "\r\n"]) } == .malformedFieldValue)
        #expect(violation { _ = try respond(to: "GET / HTTP/1.0\r\n\r\n", .ok, [:], .chunked) } == .illegalState)
    }
}
