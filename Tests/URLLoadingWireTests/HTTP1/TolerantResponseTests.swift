// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Responses that break the grammar: what a tolerant client reads, what it notes, and what a strict one refuses them
/// for. The guide "Servers that break the rules" has the same table in words.
@Suite struct TolerantResponseTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let wire: String
        /// The fields, and the body after a blank; `nil` if the response has no reading.
        let reading: String?
        /// What is noted; for a response without a reading the reason of the refusal.
        let violations: [WireViolation.Code]
        /// The reason of a strict client; the first violation by default.
        let strict: WireViolation.Code
        var testDescription: String { name }

        init(
            _ name: String, _ wire: String, _ reading: String?, _ violations: WireViolation.Code...,
            strict: WireViolation.Code? = nil
        ) {
            (self.name, self.wire, self.reading, self.violations) = (name, wire, reading, violations)
            self.strict = strict ?? violations[0]
        }

        /// A response with a length of one byte and some fields.
        init(
            _ name: String, fields: String, _ reading: String?, _ violations: WireViolation.Code...,
            strict: WireViolation.Code? = nil
        ) {
            self.name = name
            wire = "HTTP/1.1 200 OK\r\n\(fields)\r\nContent-Length: 1\r\n\r\nx"
            self.reading = reading.map { ($0.isEmpty ? "" : $0 + "|") + "Content-Length: 1 x" }
            self.violations = violations
            self.strict = strict ?? violations[0]
        }
    }

    private static let chunks = "1\r\nx\r\n0\r\n\r\n"

    static let rows: [Row] = [
        // Lines that end with LF (RFC 9112 §2.2).
        Row(
            "LF ends every line", "HTTP/1.1 200 OK\nA: b\nContent-Length: 1\n\nx", "A: b|Content-Length: 1 x",
            .bareLineFeed),
        Row(
            "LF ends the status line", "HTTP/1.1 200 OK\nA: b\r\nContent-Length: 1\r\n\r\nx",
            "A: b|Content-Length: 1 x", .bareLineFeed),
        Row("LF ends a field", fields: "A: b\nC: d", "A: b|C: d", .bareLineFeed),
        Row(
            "LF is the empty line", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\nx", "Content-Length: 1 x", .bareLineFeed),
        Row("LF and no field", "HTTP/1.1 200 OK\n\nx", " x", .bareLineFeed),
        Row(
            "LF, then an empty line with CR", "HTTP/1.1 200 OK\nContent-Length: 1\n\r\nx", "Content-Length: 1 x",
            .bareLineFeed),
        Row("LF in a head of HTTP/1.0", "HTTP/1.0 200 OK\n\nx", " x", .bareLineFeed),
        Row(
            "LF before chunks, whose lines are right", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\(chunks)",
            "Transfer-Encoding: chunked x", .bareLineFeed),
        Row(
            "LF in the lines of chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", nil,
            .bareLineFeed, strict: .bareLineFeed),
        Row(
            "LF after a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\n0\r\n\r\n", nil,
            .bareLineFeed),
        Row(
            "LF in trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n", nil, .bareLineFeed
        ),
        Row(
            "CR ends a line", "HTTP/1.1 200 OK\rA: b\r\nContent-Length: 1\r\n\r\nx", nil, .malformedFieldValue,
            strict: .malformedStatusLine),
        Row("CR in a value", fields: "A: b\rc", nil, .malformedFieldValue),
        Row(
            "CR in a line that is left out", fields: "A b\rc: d", nil, .malformedFieldValue, strict: .malformedFieldName
        ),
        Row("CR before CRLF", fields: "A: b\r", nil, .malformedFieldValue),
        // The status line (RFC 9112 §4).
        Row(
            "two blanks after the version", "HTTP/1.1  200 OK\r\nContent-Length: 1\r\n\r\nx", "Content-Length: 1 x",
            .malformedStatusLine),
        Row(
            "a tab after the version", "HTTP/1.1\t200 OK\r\nContent-Length: 1\r\n\r\nx", "Content-Length: 1 x",
            .malformedStatusLine),
        Row(
            "a tab after the status", "HTTP/1.1 200\tOK\r\nContent-Length: 1\r\n\r\nx", "Content-Length: 1 x",
            .malformedStatusLine),
        Row(
            "NUL in the reason", "HTTP/1.1 200 O\0K\r\nContent-Length: 1\r\n\r\nx", "Content-Length: 1 x",
            .malformedStatusLine),
        Row("a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", nil, .malformedStatusLine),
        Row("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", nil, .malformedStatusLine),
        Row("a status with a sign", "HTTP/1.1 +20 OK\r\n\r\n", nil, .malformedStatusLine),
        Row("a status and no blank", "HTTP/1.1 200OK\r\n\r\n", nil, .malformedStatusLine),
        Row("two blanks and a status of two digits", "HTTP/1.1  20 OK\r\n\r\n", nil, .malformedStatusLine),
        Row("an empty line before the status line", "\r\nHTTP/1.1 200 OK\r\n\r\n", nil, .notHTTP),
        Row("HTTP/0.9", "<html></html>", nil, .notHTTP),
        Row("a lower-case name of the protocol", "http/1.1 200 OK\r\n\r\n", nil, .notHTTP),
        Row("another major version", "HTTP/3.0 200 OK\r\n\r\n", nil, .unsupportedVersion),
        // Names (RFC 9110 §5.1, RFC 9112 §5.1).
        Row("a blank before the colon", fields: "A : b", "A: b", .whitespaceBeforeColon),
        Row("a tab before the colon", fields: "A\t: b", "A: b", .whitespaceBeforeColon),
        Row("a blank in a name", fields: "A b: c\r\nD: e", "D: e", .malformedFieldName),
        Row("an empty name", fields: ": b\r\nC: d", "C: d", .malformedFieldName),
        Row("a line without a colon", fields: "A\r\nC: d", "C: d", .malformedFieldName),
        Row("a name beyond ASCII", fields: "\u{e9}: b\r\nC: d", "C: d", .malformedFieldName),
        Row("a name with brackets", fields: "A(1): b\r\nC: d", "C: d", .malformedFieldName),
        Row("NUL in a name", fields: "A\0: b\r\nC: d", "C: d", .malformedFieldName),
        Row("a quoted name", fields: "\"A\": b\r\nC: d", "C: d", .malformedFieldName),
        Row(
            "a name that is left out with its continuation", fields: "A b: c\r\n d\r\nE: f", "E: f", .malformedFieldName
        ),
        Row("a continuation before any field", fields: " A: b\r\nC: d", "C: d", .obsoleteFolding),
        Row("a continuation in a repaired head", fields: "A : b\r\n c\r\n\t d", "A: b c d", .whitespaceBeforeColon),
        Row(
            "several kinds", fields: "A : b\r\nC d: e\nF: g\0", "A: b|F: g", .whitespaceBeforeColon, .bareLineFeed,
            .malformedFieldName, .malformedFieldValue, strict: .bareLineFeed),
        // Values (RFC 9110 §5.5).
        Row("NUL in a value", fields: "A: b\0c", "A: b c", .malformedFieldValue),
        Row("escape in a value", fields: "A: \u{1b}[1mb", "A: [1mb", .malformedFieldValue),
        Row("DEL in a value", fields: "A: b\u{7f}", "A: b", .malformedFieldValue),
        Row("NUL in a cookie", fields: "Set-Cookie: a=b\0\r\nC: d", "C: d", .malformedFieldValue),
        Row("NUL in Location", fields: "Location: /a\0b", nil, .malformedFieldValue),
        Row("escape in Location", fields: "Location: /a\u{1b}b", nil, .malformedFieldValue),
        // Lengths (RFC 9112 §6.3).
        Row(
            "a blank before the colon of the length", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx",
            "Content-Length: 1 x", .whitespaceBeforeColon),
        Row(
            "a blank in the name of the length", "HTTP/1.1 200 OK\r\nContent Length: 9\r\n\r\nx", " x",
            .malformedFieldName),
        Row(
            "lengths that differ", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", nil,
            .conflictingContentLength),
        Row(
            "lengths that differ, one with a blank",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length : 2\r\n\r\nx", nil, .conflictingContentLength,
            strict: .whitespaceBeforeColon),
        Row("a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", nil, .malformedContentLength),
        Row(
            "a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\nx", nil, .malformedContentLength
        ),
        Row(
            "an empty length, and LF", "HTTP/1.1 200 OK\nContent-Length:\n\nx", nil, .malformedContentLength,
            strict: .bareLineFeed),
        Row("NUL in a length", "HTTP/1.1 200 OK\r\nContent-Length: 1\0\r\n\r\nx", nil, .malformedFieldValue),
        // Codings (RFC 9112 §6.1, §6.3).
        Row(
            "a coding and a length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .transferEncodingWithContentLength),
        Row(
            "a length and a coding",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .transferEncodingWithContentLength),
        Row(
            "a coding and a wrong length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: -\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .transferEncodingWithContentLength),
        Row(
            "a coding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .transferEncodingInOldVersion),
        Row(
            "identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
            "Content-Length: 1 x", .unsupportedTransferEncoding, strict: .transferEncodingWithContentLength),
        Row(
            "identity without a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx", " x",
            .unsupportedTransferEncoding),
        Row(
            "identity in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx", " x",
            .unsupportedTransferEncoding, strict: .transferEncodingInOldVersion),
        Row(
            "an empty coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 1\r\n\r\nx",
            "Content-Length: 1 x", .unsupportedTransferEncoding, strict: .transferEncodingWithContentLength),
        Row(
            "chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .unsupportedTransferEncoding),
        Row(
            "chunked in two fields",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked|A: b x", .unsupportedTransferEncoding),
        Row(
            "identity, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .unsupportedTransferEncoding),
        Row(
            "gzip, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\(chunks)", nil,
            .unsupportedTransferEncoding),
        Row("an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n", nil, .unsupportedTransferEncoding),
        Row(
            "a blank before the colon of the coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .whitespaceBeforeColon),
        Row(
            "a blank before the colon of the coding, and a length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .whitespaceBeforeColon, .transferEncodingWithContentLength),
        Row(
            "a chunk size that is no number", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", nil,
            .malformedChunkSize),
        Row(
            "chunked, identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n\(chunks)", nil,
            .unsupportedTransferEncoding),
        Row(
            "a coding in HTTP/1.0, and a length",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n\(chunks)",
            "Transfer-Encoding: chunked x", .transferEncodingWithContentLength, .transferEncodingInOldVersion,
            strict: .transferEncodingInOldVersion),
        Row(
            "a continued coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n\(chunks)", nil,
            .obsoleteFolding),
        Row("a continued length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx", nil, .obsoleteFolding),
        Row(
            "a continued length, and LF", "HTTP/1.1 200 OK\nContent-Length:\n 1\n\nx", nil, .obsoleteFolding,
            strict: .bareLineFeed),
        Row(
            "NUL in the name of a coding", "HTTP/1.1 200 OK\r\nTransfer-Enco\0ding: chunked\r\n\r\nx", nil,
            .malformedFieldName),
        Row(
            "NUL in a length beside a coding",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\0\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)", nil,
            .malformedFieldValue),
        Row("NUL after the version", "HTTP/1.1\0200 OK\r\n\r\n", nil, .malformedStatusLine),
        Row("NUL after the status", "HTTP/1.1 200\0OK\r\n\r\n", nil, .malformedStatusLine),
    ]

    private func client(_ isTolerant: Bool, _ method: Method = .get, _ headers: Headers = [:]) throws -> HTTP1Codec {
        var codec = HTTP1Codec(role: .client, isTolerant: isTolerant)
        var output: [UInt8] = []
        try codec.sendRequest(
            method: method, target: bytes("/"), host: bytes("h"), headers: headers, framing: .none, into: &output)
        return codec
    }

    /// The violations of the final head.
    private func violations(_ wire: [UInt8]) throws -> [WireViolation.Code] {
        var codec = try client(true)
        var consumed = 0
        guard case .response(let head)? = try codec.next(wire, &consumed) else { return [] }
        return head.violations.all.map(\.code)
    }

    @Test("a tolerant client reads it, and nothing follows on its connection", arguments: rows)
    func tolerant(row: Row) throws {
        let endsByClose = row.reading?.hasPrefix(" ") == true
        let result = runAllSplits(try client(true), bytes(row.wire), end: endsByClose)
        guard let reading = row.reading else {
            #expect(result.violation == row.violations[0] && result.reuse == .never, "\(result)")
            return
        }
        let fields = result.lines.first.map { line in line.drop { $0 != "[" }.dropFirst().dropLast() } ?? "no head"
        #expect("\(fields) \(String(decoding: result.body, as: UTF8.self))" == reading, "\(result)")
        #expect(result.violation == nil && result.reuse == .never && result.lines.last == "end []")
        #expect(try violations(bytes(row.wire)) == row.violations)
    }

    @Test("a strict client refuses it", arguments: rows) func strict(row: Row) throws {
        let result = runAllSplits(try client(false), bytes(row.wire))
        #expect(result.violation == row.strict, "\(result)")
    }

    @Test(
        "a second response behind it is never read, in the same piece or later",
        arguments: rows.filter { $0.reading?.hasPrefix(" ") == false })
    func smuggled(row: Row) throws {
        let second = bytes("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
        for pieces in [[bytes(row.wire) + second], [bytes(row.wire), second]] {
            var codec = try client(true)
            let result = run(codec, pieces, end: false)
            #expect(result.lines.count == 2 && !String(decoding: result.body, as: UTF8.self).contains("bad"))
            #expect(result.reuse == .never)
            #expect(violation { try codec.startNextExchange() } == .illegalState)
        }
    }

    @Test("no other protocol begins with a repaired head") func noUpgrade() throws {
        let upgrade = try client(true, .get, [.connection: "Upgrade", .upgrade: "websocket"])
        let switching = "HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n"
        #expect(runAllSplits(upgrade, bytes(switching)).violation == .bareLineFeed)
        let tunnel = runAllSplits(try client(true, .connect), bytes("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"))
        #expect(tunnel.violation == .whitespaceBeforeColon && tunnel.lines.isEmpty)
    }

    @Test("an interim response with faults is read, and closes the connection after the final one") func interim()
        throws
    {
        let wire = "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
        let result = runAllSplits(try client(true), bytes(wire))
        #expect(
            result.lines.map { $0.prefix(24) }
                == ["informational HTTP/1.1 10", "response HTTP/1.1 200 OK", "end []"].map { $0.prefix(24) })
        #expect(result.reuse == .never && result.violation == nil)
        #expect(try finalViolations(bytes(wire)) == [.bareLineFeed])
        // Each once, although both heads have it.
        let twice = wire.replacing("\r\n", with: "\n")
        #expect(try finalViolations(bytes(twice)) == [.bareLineFeed])
        let upgrade = try client(true, .get, [.connection: "Upgrade", .upgrade: "websocket"])
        let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        #expect(
            runAllSplits(upgrade, bytes("HTTP/1.1 103 Early Hints\n\n" + switching)).violation == .bareLineFeed)
    }

    /// The violations of the response after an interim one.
    private func finalViolations(_ wire: [UInt8]) throws -> [WireViolation.Code] {
        var codec = try client(true)
        var consumed = 0
        _ = try codec.next(wire, &consumed)
        guard case .response(let head)? = try codec.next(Array(wire[consumed...]), &consumed) else { return [] }
        return head.violations.all.map(\.code)
    }

    @Test("limits count in a repaired head") func limits() throws {
        var limits = HTTP1Limits()
        limits.fieldCount = 3
        limits.headSize = 60
        var codec = HTTP1Codec(role: .client, limits: limits, isTolerant: true)
        var output: [UInt8] = []
        try codec.sendRequest(
            method: .get, target: bytes("/"), host: bytes("h"), headers: [:], framing: .none, into: &output)
        #expect(runAllSplits(codec, bytes("HTTP/1.1 200 OK\nA: b\nC: d\nE: f\nG: h\n\n")).violation == .tooManyFields)
        #expect(
            runAllSplits(codec, bytes("HTTP/1.1 200 OK\nA: \(String(repeating: "b", count: 60))\n\n")).violation
                == .headTooLarge)
    }

    @Test("a server stays strict") func server() throws {
        let codec = HTTP1Codec(role: .server, isTolerant: true)
        #expect(runAllSplits(codec, bytes("GET / HTTP/1.1\nHost: h\n\n")).violation == .bareLineFeed)
        #expect(runAllSplits(codec, bytes("GET / HTTP/1.1\r\nHost : h\r\n\r\n")).violation == .whitespaceBeforeColon)
    }
}
