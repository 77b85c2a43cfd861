// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Requests that a server accepts and refuses, however they are cut.
@Suite struct RequestTests {
    static let accepted: [(wire: String, lines: [String], body: String, reuse: HTTP1Reuse)] = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ["request GET / HTTP/1.1 [Host: a]", "end []"], "", .notYet),
        (
            "\r\n\r\nGET /a?b HTTP/1.1\r\nhost: a:80\r\n\r\n", ["request GET /a?b HTTP/1.1 [host: a:80]", "end []"], "",
            .notYet
        ),
        ("GET / HTTP/1.0\r\n\r\n", ["request GET / HTTP/1.0 []", "end []"], "", .never),
        ("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", ["request OPTIONS * HTTP/1.1 [Host: ]", "end []"], "", .notYet),
        (
            "POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 3\r\n\r\nabc",
            ["request POST / HTTP/1.1 [Host: [::1]|Content-Length: 3]", "end []"], "abc", .notYet
        ),
        (
            """
            POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
            3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n
            """,
            ["request POST / HTTP/1.1 [Host: a|Connection: close|Transfer-Encoding: chunked]", "end [T: 1]"], "abc",
            .never
        ),
    ]

    @Test("Valid requests are accepted") func accepts() {
        for sample in Self.accepted {
            let result = runAllSplits(HTTP1Codec(role: .server), bytes(sample.wire))
            #expect(result.lines == sample.lines)
            #expect(result.body == bytes(sample.body))
            #expect(result.violation == nil)
            #expect(result.reuse == sample.reuse)
        }
    }

    static let refused: [(String, WireViolation.Code)] = [
        ("GET  / HTTP/1.1\r\n\r\n", .malformedRequestLine), ("GET /\r\n\r\n", .malformedRequestLine),
        ("GET / HTTP/1.1 \r\n\r\n", .malformedRequestLine), (" GET / HTTP/1.1\r\n\r\n", .malformedRequestLine),
        ("GET /a b HTTP/1.1\r\n\r\n", .malformedRequestLine), ("GET /\u{e9} HTTP/1.1\r\n\r\n", .malformedRequestLine),
        ("G\0T / HTTP/1.1\r\n\r\n", .malformedRequestLine), ("GET\t/ HTTP/1.1\r\n\r\n", .malformedRequestLine),
        ("\r\n\r\n\r\n\r\n\r\nGET", .malformedRequestLine), ("\rGET", .malformedRequestLine),
        ("\u{16}\u{3}\u{1}", .malformedRequestLine), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .unsupportedVersion),
        ("GET / HTTP/1.1\r\n\r\n", .missingHost), ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", .duplicateHost),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", .malformedHost), ("GET / HTTP/1.1\nHost: a\n\n", .bareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", .obsoleteFolding),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", .whitespaceBeforeColon),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .conflictingContentLength),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            .transferEncodingWithContentLength
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", .unsupportedTransferEncoding),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncodingInOldVersion),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n", .malformedChunkSize),
    ]

    @Test("Invalid requests are refused (security 45)") func refuses() {
        for (wire, code) in Self.refused {
            #expect(runAllSplits(HTTP1Codec(role: .server), bytes(wire)).violation == code, "\(wire.debugDescription)")
            #expect(runAllSplits(HTTP1Codec(role: .server), bytes(wire + "tail\r\n\r\n")).violation == code)
        }
    }

    @Test("An end of input within a request is an error") func endOfInput() {
        for sample in Self.accepted where sample.body.isEmpty {
            let wire = bytes(sample.wire)
            #expect(run(HTTP1Codec(role: .server), [], end: true).violation == nil)
            let start = wire.firstIndex { $0 != .cr && $0 != .lf } ?? 0
            for end in (start + 1)..<wire.count {
                #expect(run(HTTP1Codec(role: .server), [Array(wire[..<end])], end: true).violation == .prematureEnd)
            }
        }
    }

    @Test("Pipelined requests are read one by one") func pipelining() throws {
        var codec = HTTP1Codec(role: .server)
        var wire = bytes("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        for path in ["/1", "/2"] {
            var consumed = 0
            guard case .request(let head) = try codec.next(wire, &consumed) else { return #expect(Bool(false)) }
            #expect(head.target == path)
            wire.removeFirst(consumed)
            #expect(try codec.next(wire, &consumed) == .end(trailers: [:]))
            var output: [UInt8] = []
            try codec.sendResponse(status: .noContent, headers: [:], into: &output)
            #expect(output == bytes("HTTP/1.1 204 No Content\r\n\r\n"))
            #expect(codec.reuse == .yes)
            try codec.startNextExchange()
        }
    }
}
