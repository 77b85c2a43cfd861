// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Responses that a client refuses, each with its own code, however they are cut (security 43, 45, 47).
@Suite struct ResponseRefusalTests {
    struct Refusal: Sendable, CustomTestStringConvertible {
        var wire: [UInt8]
        var code: WireViolation.Code
        var testDescription: String { code.rawValue + ": " + String(decoding: wire.prefix(60), as: UTF8.self) }

        init(_ wire: String, _ code: WireViolation.Code) {
            self.wire = Array(wire.utf8)
            self.code = code
        }
        init(fields: String, _ code: WireViolation.Code) { self.init("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n", code) }
        init(chunks: String, _ code: WireViolation.Code) {
            self.init("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)", code)
        }
    }

    static let refusals: [Refusal] = [
        // Another protocol.
        Refusal("SSH-2.0-OpenSSH_9.2\r\n", .notHTTP), Refusal("220 ftp ready\r\n", .notHTTP),
        Refusal("\u{15}\u{3}\u{1}\0\u{2}\u{2}P", .notHTTP), Refusal("\r\nHTTP/1.1 200 OK\r\n\r\n", .notHTTP),
        Refusal("http/1.1 200 OK\r\n\r\n", .notHTTP), Refusal("ICY 200 OK\r\n\r\n", .notHTTP),
        Refusal("<html>HTTP/0.9</html>", .notHTTP), Refusal(" HTTP/1.1 200 OK\r\n\r\n", .notHTTP),
        Refusal("\0\0\u{12}\u{4}\0\0\0\0\0", .notHTTP), Refusal("HTTQ/1.1", .notHTTP),
        // Status line.
        Refusal("HTTP/2 200\r\n\r\n", .unsupportedVersion), Refusal("HTTP/2.0 200 OK\r\n\r\n", .unsupportedVersion),
        Refusal("HTTP/0.9 200 OK\r\n\r\n", .unsupportedVersion), Refusal("HTTP/1 200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.10 200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 20 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 2000 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1  200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1\t200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 -20 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 200OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 200 O\0K\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1 200 O\rK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/\r\n\r\n", .malformedStatusLine), Refusal("HTTP/x.1 200 OK\r\n\r\n", .malformedStatusLine),
        Refusal("HTTP/1.1\r\n\r\n", .malformedStatusLine), Refusal("HTTP/1.1 200\t\r\n\r\n", .malformedStatusLine),
        // Lines.
        Refusal("HTTP/1.1 200 OK\nA: b\n\n", .bareLineFeed), Refusal(fields: "A: b\nC: d", .bareLineFeed),
        Refusal("HTTP/1.1 200 OK\r\nA: b\r\n\n", .bareLineFeed), Refusal("HTTP/1.1 200 OK\r\n\n", .bareLineFeed),
        // Fields (security 43).
        Refusal(fields: "A : b", .whitespaceBeforeColon), Refusal(fields: "A\t: b", .whitespaceBeforeColon),
        Refusal(fields: "Content-Length : 1", .whitespaceBeforeColon), Refusal(fields: "A", .malformedFieldName),
        Refusal(fields: ": b", .malformedFieldName), Refusal(fields: "A b: c", .malformedFieldName),
        Refusal(fields: "A\0: b", .malformedFieldName), Refusal(fields: "\u{e9}: b", .malformedFieldName),
        Refusal(fields: "A(: b", .malformedFieldName), Refusal(fields: "A: b\0c", .malformedFieldValue),
        Refusal(fields: "A: b\rc", .malformedFieldValue), Refusal(fields: "A: b\r\r", .malformedFieldValue),
        Refusal(fields: "A: \u{1b}[1m", .malformedFieldValue), Refusal(fields: "A: \u{7f}", .malformedFieldValue),
        // CR, LF and NUL in a cookie would split fields (RFC 9110 §5.5).
        Refusal(fields: "Set-Cookie: a=\0", .malformedFieldValue),
        Refusal(fields: "Set-Cookie: a=\u{1}\rb", .malformedFieldValue),
        Refusal(fields: "Set-Cookie: a\r\n \u{1}\0", .malformedFieldValue),
        Refusal(fields: "Set-Cookie2: \u{1}", .malformedFieldValue),
        Refusal(fields: "Set-Cookie: a=\u{1}\r\nA: \u{1}", .malformedFieldValue),
        Refusal(fields: "Set-Cookie: a=\u{1}\r\nContent-Length: 1\r\n \u{1}", .obsoleteFolding),
        Refusal(fields: " A: b", .obsoleteFolding), Refusal(fields: "A: b\r\n \0", .malformedFieldValue),
        // Lengths (security 45).
        Refusal(fields: "Content-Length: 5\r\nContent-Length: 6", .conflictingContentLength),
        Refusal(fields: "Content-Length: 5, 6", .conflictingContentLength),
        Refusal(fields: "Content-Length: 5,", .malformedContentLength),
        Refusal(fields: "Content-Length:", .malformedContentLength),
        Refusal(fields: "Content-Length: +5", .malformedContentLength),
        Refusal(fields: "Content-Length: -5", .malformedContentLength),
        Refusal(fields: "Content-Length: 5 5", .malformedContentLength),
        Refusal(fields: "Content-Length: 0x5", .malformedContentLength),
        Refusal(fields: "Content-Length: 5.0", .malformedContentLength),
        Refusal(fields: "Content-Length: \u{ff15}", .malformedContentLength),
        Refusal(fields: "Content-Length: 9223372036854775808", .malformedContentLength),
        Refusal(fields: "Content-Length: 99999999999999999999999", .malformedContentLength),
        Refusal(fields: "Content-Length: 5\r\n 5", .obsoleteFolding),
        // Transfer codings (security 45).
        Refusal(fields: "Content-Length: 5\r\nTransfer-Encoding: chunked", .transferEncodingWithContentLength),
        Refusal(fields: "Transfer-Encoding: chunked\r\nContent-Length: x", .transferEncodingWithContentLength),
        Refusal(fields: "Transfer-Encoding: gzip, chunked", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked, gzip", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked, chunked", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: identity", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding:", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: xchunked", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: \"chunked\"", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: chunked;q=1", .unsupportedTransferEncoding),
        Refusal(fields: "Transfer-Encoding: \u{b}chunked", .malformedFieldValue),
        Refusal("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncodingInOldVersion),
        // Chunks (security 45).
        Refusal(chunks: "\r\n", .malformedChunkSize), Refusal(chunks: "g\r\n", .malformedChunkSize),
        Refusal(chunks: "-1\r\n", .malformedChunkSize), Refusal(chunks: "+1\r\n", .malformedChunkSize),
        Refusal(chunks: "0x1\r\n", .malformedChunkSize), Refusal(chunks: " 1\r\n", .malformedChunkSize),
        Refusal(chunks: "1 2\r\n", .malformedChunkSize), Refusal(chunks: "1;\0\r\n", .malformedChunkSize),
        Refusal(chunks: "1;a\rb\r\n", .malformedChunkSize), Refusal(chunks: "1\n", .bareLineFeed),
        Refusal(chunks: "1;a\n", .bareLineFeed), Refusal(chunks: "8000000000000000\r\n", .chunkSizeOverflow),
        Refusal(chunks: "00000000000000001\r\n", .chunkSizeOverflow),
        Refusal(chunks: "ffffffffffffffff\r\n", .chunkSizeOverflow),
        Refusal(chunks: "1\r\nab\r\n", .malformedChunkEnd), Refusal(chunks: "1\r\na\rb", .malformedChunkEnd),
        Refusal(chunks: "1\r\na\n0\r\n\r\n", .bareLineFeed), Refusal(chunks: "1\r\na0\r\n\r\n", .malformedChunkEnd),
        // Trailers.
        Refusal(chunks: "0\r\nA : b\r\n\r\n", .whitespaceBeforeColon),
        Refusal(chunks: "0\r\nA: b\n\r\n", .bareLineFeed),
        Refusal(chunks: "0\r\n A: b\r\n\r\n", .obsoleteFolding), Refusal(chunks: "0\r\nA\r\n\r\n", .malformedFieldName),
        // Unsolicited bytes.
        Refusal("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", .unexpectedUpgrade),
    ]

    @Test("Invalid responses are refused", arguments: refusals) func refuses(_ refusal: Refusal) throws {
        let codec = try client()
        #expect(runAllSplits(codec, refusal.wire).violation == refusal.code)
        #expect(runAllSplits(codec, refusal.wire + bytes("\r\n\r\ngarbage\0\u{ff}")).violation == refusal.code)
    }

    @Test(
        "The offset of a violation in a body counts from the body's start, however it is cut",
        arguments: [
            ("5\r\nhello\r\nzz\r\n", 10), ("5\r\nhello!\r\n", 8), ("1\r\na\r\n0\r\nA : b\r\n\r\n", 10),
        ])
    func offsets(_ chunks: String, _ offset: Int) throws {
        let wire = bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        for cut in wire.indices {
            var codec = try client()
            var rest: [UInt8] = []
            var found: WireViolation?
            for piece in [wire[..<cut], wire[cut...]] where found == nil {
                rest += piece
                var consumed = 0
                do {
                    while try codec.next(rest, &consumed) != nil { rest.removeFirst(consumed) }
                    rest.removeFirst(consumed)
                } catch { found = error as? WireViolation }
            }
            #expect(found?.offset == offset && found?.isInBody == true, "\(cut)")
        }
    }

    static let small: HTTP1Limits = {
        var limits = HTTP1Limits()
        limits.headSize = 200
        limits.fieldCount = 5
        limits.chunkExtensionSize = 20
        limits.trailerSize = 50
        limits.informationalCount = 3
        return limits
    }()

    @Test("Short extensions and blanks beside data have no limit", arguments: [" ", "  ", ";x", ";name=value"])
    func shortExtensions(_ text: String) throws {
        let count = 20_000
        let pieces =
            [bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")]
            + Array(repeating: bytes("5\(text)\r\nhello\r\n"), count: count) + [bytes("0\r\n\r\n")]
        let transcript = run(try client(), pieces, end: false)
        #expect(transcript.violation == nil && transcript.body.count == 5 * count)
    }

    /// No part of a message is collected without limit; each limit is exact (security 47).
    @Test("Parts of a message have limits (security 47)") func limits() throws {
        let codec = try client(limits: Self.small)
        let ok = "HTTP/1.1 204 OK\r\n"
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let fill = 200 - ok.utf8.count - "A: \r\n\r\n".utf8.count
        #expect(runAllSplits(codec, bytes("\(ok)A: \(String(repeating: "x", count: fill))\r\n\r\n")).violation == nil)
        for (wire, code) in [
            ("\(ok)A: \(String(repeating: "x", count: fill + 1))\r\n\r\n", WireViolation.Code.headTooLarge),
            ("HTTP/1.1 200 " + String(repeating: "x", count: 5000), .headTooLarge),
            (ok + String(repeating: "A: b\r\n", count: 6) + "\r\n", .tooManyFields),
            (chunked + "1;" + String(repeating: "x", count: 20) + "\r\na\r\n", .chunkExtensionsTooLarge),
            (chunked + String(repeating: "1;abcdefghijklmnopqrs\r\na\r\n", count: 3), .chunkExtensionsTooLarge),
            (chunked + "1;" + String(repeating: "x", count: 500), .chunkExtensionsTooLarge),
            (chunked + "0\r\nA: " + String(repeating: "x", count: 50), .trailersTooLarge),
            (chunked + "0\r\n" + String(repeating: "A:b\r\n", count: 6) + "\r\n", .tooManyFields),
            (String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 4), .tooManyInformational),
        ] {
            #expect(runAllSplits(codec, bytes(wire)).violation == code)
        }
        let fits = [
            ok + String(repeating: "A: b\r\n", count: 5) + "\r\n",
            chunked + "1;" + String(repeating: "x", count: 19) + "\r\na\r\n0\r\n\r\n",
            String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 3) + ok + "\r\n",
        ]
        for wire in fits { #expect(runAllSplits(codec, bytes(wire)).violation == nil) }
    }

    @Test("Limits that are not between 0 and 2^30 count as the nearest such number", arguments: [-1, Int.min, Int.max])
    func excessiveLimits(_ size: Int) throws {
        var limits = HTTP1Limits()
        limits.chunkExtensionSize = size
        let wire = bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        let transcript = runAllSplits(try client(limits: limits), wire)
        #expect(transcript.violation == nil && transcript.body == bytes("x"))
    }

    /// Byte-by-byte delivery of a large head must not scan every byte repeatedly.
    @Test("A large head in small pieces is scanned once") func aLargeHeadInSmallPieces() throws {
        var limits = HTTP1Limits()
        limits.headSize = 1 << 20
        var codec = try client(limits: limits)
        let head = bytes("HTTP/1.1 200 OK\r\nA: \(String(repeating: "x", count: 500_000))")
        var consumed = 0
        let events = try head.withUnsafeBytes { input in
            try stride(from: 1, through: head.count, by: 7).count { count in
                try codec.next(UnsafeRawBufferPointer(rebasing: input[..<count]), consumed: &consumed) != nil
            }
        }
        #expect(events == 0 && consumed == 0)
    }

    @Test("After a violation the codec only fails") func afterAViolationTheCodecOnlyFails() throws {
        var codec = try client()
        var consumed = 0
        let wire = bytes("SSH-2.0")
        #expect(violation { _ = try codec.next(wire, &consumed) } == .notHTTP)
        #expect(violation { _ = try codec.next(wire, &consumed) } == .illegalState)
        #expect(violation { _ = try codec.receiveEnd() } == .illegalState)
        #expect(codec.reuse == .never)
    }
}
