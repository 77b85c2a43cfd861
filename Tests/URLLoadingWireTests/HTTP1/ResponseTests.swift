// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Responses that a client accepts: each whole, byte by byte, cut at every point, and followed by other bytes.
@Suite struct ResponseTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        var name: String
        var method = Method.get
        var wire: String
        var lines: [String]
        var body = ""
        var reuse = HTTP1Reuse.yes
        /// Ends by closing: all further bytes are body.
        var untilClose = false
        var testDescription: String { name }
    }

    static let samples: [Sample] = [
        Sample(
            name: "length", wire: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            lines: ["response HTTP/1.1 200 OK [Content-Length: 5]", "end []"], body: "hello"),
        Sample(
            name: "empty", wire: "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [content-length: 0]", "end []"]),
        Sample(
            name: "no fields", wire: "HTTP/1.1 204 No Content\r\n\r\n",
            lines: ["response HTTP/1.1 204 No Content []", "end []"]),
        Sample(
            name: "chunked",
            wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [Transfer-Encoding: Chunked]", "end []"], body: "hello world"),
        Sample(
            name: "chunked with trailers",
            wire:
                """
                HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked ,\r\n\r\n\
                0a ; q="x;y"\r\n0123456789\r\n000\r\nA: 1\r\nB:\t2\t\r\n\r\n
                """,
            lines: ["response HTTP/1.1 200 OK [Transfer-Encoding: , chunked ,]", "end [A: 1|B: 2]"],
            body: "0123456789"),
        Sample(
            name: "chunk size padded with blanks",
            wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \t\r\na\r\n0  \r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [Transfer-Encoding: chunked]", "end []"], body: "a"),
        Sample(
            name: "until close", wire: "HTTP/1.1 200 OK\r\n\r\nall\r\n\r\nof it",
            lines: ["response HTTP/1.1 200 OK []", "end []"], body: "all\r\n\r\nof it", reuse: .never,
            untilClose: true),
        Sample(
            name: "HTTP/1.0", wire: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
            lines: ["response HTTP/1.0 200 OK [Content-Length: 1]", "end []"], body: "a", reuse: .never),
        Sample(
            name: "HTTP/1.0 keep-alive",
            wire: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na",
            lines: ["response HTTP/1.0 200 OK [Connection: Keep-Alive|Content-Length: 1]", "end []"], body: "a"),
        Sample(
            name: "HTTP/1.9 is 1.1", wire: "HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.9 200 OK [Content-Length: 0]", "end []"]),
        Sample(
            name: "close", wire: "HTTP/1.1 200 OK\r\nConnection: x, ClOsE\r\nContent-Length: 1\r\n\r\na",
            lines: ["response HTTP/1.1 200 OK [Connection: x, ClOsE|Content-Length: 1]", "end []"], body: "a",
            reuse: .never),
        Sample(
            name: "no reason, no space", wire: "HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 299  [Content-Length: 0]", "end []"]),
        Sample(
            name: "no reason, space", wire: "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 200  [Content-Length: 0]", "end []"]),
        Sample(
            name: "reason of obs-text", wire: "HTTP/1.1 404 Não, é\tbom\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 404 Não, é\tbom [Content-Length: 0]", "end []"]),
        Sample(
            name: "code beyond the registered", wire: "HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 999 Denied [Content-Length: 0]", "end []"]),
        Sample(
            name: "equal lengths (security 45)",
            wire: "HTTP/1.1 200 OK\r\nContent-Length: 1, 01\r\nContent-Length: 1\r\n\r\na",
            lines: ["response HTTP/1.1 200 OK [Content-Length: 1, 01|Content-Length: 1]", "end []"], body: "a"),
        Sample(
            name: "informational",
            wire:
                """
                HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
                """,
            lines: [
                "informational HTTP/1.1 100 Continue []", "informational HTTP/1.1 103 Early Hints [Link: </a>]",
                "response HTTP/1.1 200 OK [Content-Length: 0]", "end []",
            ]),
        Sample(
            name: "HEAD", method: .head, wire: "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [Content-Length: 500]", "end []"]),
        Sample(
            name: "HEAD of chunks", method: .head, wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [Transfer-Encoding: chunked]", "end []"]),
        Sample(
            name: "304 with a length", wire: "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
            lines: ["response HTTP/1.1 304 Not Modified [Content-Length: 500]", "end []"]),
        Sample(
            name: "CONNECT refused", method: .connect, wire: "HTTP/1.1 407 Auth\r\nContent-Length: 2\r\n\r\nno",
            lines: ["response HTTP/1.1 407 Auth [Content-Length: 2]", "end []"], body: "no"),
        Sample(
            name: "folded value",
            wire: "HTTP/1.1 200 OK\r\nA: b \r\n \tc\r\n\t\r\n d\r\nE:\r\n f\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [A: b     c      d|E: f|Content-Length: 0]", "end []"]),
        Sample(
            name: "empty and odd values",
            wire: "HTTP/1.1 200 OK\r\nA:\r\nB:  \t \r\n!#$%&'*+-.^_`|~9:\u{ff}:\r\nContent-Length: 0\r\n\r\n",
            lines: ["response HTTP/1.1 200 OK [A: |B: |!#$%&'*+-.^_`|~9: \u{ff}:|Content-Length: 0]", "end []"]),
    ]

    @Test("Valid responses are accepted", arguments: samples) func accepts(_ sample: Sample) throws {
        let codec = try client(sample.method)
        let result = runAllSplits(codec, bytes(sample.wire), end: sample.untilClose)
        #expect(result.lines == sample.lines)
        #expect(result.body == bytes(sample.body))
        #expect(result.violation == nil)
        #expect(result.reuse == sample.reuse)
    }

    /// Bytes after a response are never a response, and end the connection (security 46).
    @Test("Bytes after a response end the connection (security 46)", arguments: samples.filter { !$0.untilClose })
    func tail(_ sample: Sample) throws {
        let codec = try client(sample.method)
        for tail in ["x", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] {
            let result = runAllSplits(codec, bytes(sample.wire + tail))
            #expect(result.lines == sample.lines)
            #expect(result.body == bytes(sample.body))
            #expect(result.reuse == .never)
        }
    }

    @Test("An end of input at any byte is an error unless the response was complete", arguments: samples) func cutShort(
        _ sample: Sample
    ) throws {
        let codec = try client(sample.method)
        let wire = bytes(sample.wire)
        for end in wire.indices {
            let result = run(codec, [Array(wire[..<end])], end: true)
            if sample.untilClose, result.lines.count > 1 { continue }
            // Some samples are complete before their last byte only if the rest is garbage.
            #expect(result.violation == .prematureEnd, "\(end): \(result)")
        }
    }

    @Test("HTTP/1.0 has no upgrade (RFC 9110 §7.8)") func upgradeOfOldVersion() throws {
        let upgrade = try client(headers: [.connection: "Upgrade", .upgrade: "websocket"])
        let result = runAllSplits(
            upgrade, bytes("HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"), end: true)
        #expect(result.violation == .unexpectedUpgrade && result.lines.isEmpty)
    }

    @Test(
        "A cookie with a control character is dropped with all of its lines",
        arguments: [
            ("Set-Cookie: a=\u{1}\r\nA: b", "A: b"),
            ("A: b\r\nset-cookie: a=\u{1B}[1m\r\nSET-COOKIE: c=d", "A: b|SET-COOKIE: c=d"),
            ("A: b\r\nSet-Cookie: a=\u{7F}\r\n c=d\r\n\te\r\nF: g", "A: b|F: g"),
            ("Set-Cookie: a=1\r\n b\u{2}\r\n c\r\nA: b", "A: b"),
            ("Set-Cookie: \u{1}", ""),
        ])
    func cookiesWithControls(_ fields: String, _ left: String) throws {
        let result = runAllSplits(try client(), bytes("HTTP/1.1 204 No Content\r\n\(fields)\r\n\r\n"), end: false)
        #expect(result.lines.first == "response HTTP/1.1 204 No Content [\(left)]" && result.violation == nil)
    }

    @Test("An upgrade and a tunnel end HTTP on the connection") func upgradeAndTunnel() throws {
        let tail = "\u{1}rest"
        let upgrade = try client(headers: [.connection: "Upgrade", .upgrade: "websocket"])
        let wire = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
        let result = runAllSplits(upgrade, bytes(wire + tail), end: true)
        #expect(result.lines == ["upgraded HTTP/1.1 101 Switching Protocols [Upgrade: websocket]"])
        #expect(result.reuse == .never)
        #expect(result.body.isEmpty)
        let tunnel = try client(.connect)
        let connected = runAllSplits(tunnel, bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + tail), end: true)
        #expect(connected.lines == ["upgraded HTTP/1.1 200 OK [Content-Length: 9]"])
        #expect(connected.body.isEmpty && connected.violation == nil)
    }

    @Test("Bytes after a 101 belong to the other protocol") func theTailIsLeftToTheOtherProtocol() throws {
        var codec = try client(.connect)
        let wire = bytes("HTTP/1.1 200 OK\r\n\r\ntail")
        var consumed = 0
        #expect(try codec.next(wire, &consumed) != nil)
        #expect(consumed == wire.count - 4)
        #expect(try codec.next(bytes("tail"), &consumed) == nil)
        #expect(consumed == 0)
    }

    /// A response without a request (security 46).
    @Test("A response without a request is refused") func aResponseWithoutARequestIsRefused() {
        let result = run(HTTP1Codec(role: .client), [bytes("HTTP/1.1 200 OK\r\n\r\n")], end: false)
        #expect(result.violation == .unexpectedResponse)
    }

    @Test("A second exchange follows on the connection") func twoExchanges() throws {
        var codec = try client()
        var consumed = 0
        let wire = bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        for _ in 0..<2 {
            #expect(!codec.hasReceivedBytes)
            #expect(try codec.next(wire, &consumed) != nil)
            #expect(consumed == wire.count)
            #expect(violation { try codec.startNextExchange() } == .illegalState)
            #expect(try codec.next([], &consumed) == .end(trailers: [:]))
            try codec.startNextExchange()
            var output: [UInt8] = []
            try codec.sendRequest(
                method: .get, target: bytes("/"), host: bytes("h"), headers: [:], framing: .none, into: &output)
        }
        #expect(codec.description == "HTTP/1.1 client: sending ended, receiving head, reuse notYet")
    }
}
