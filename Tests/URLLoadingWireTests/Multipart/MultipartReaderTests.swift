// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 2046 §5.1, and the deviations of network cameras.
@Suite struct MultipartReaderTests {
    /// The example of RFC 2046 5.1.1.
    @Test("The example of RFC 2046 §5.1.1 is read") func theExampleOfTheRFC() throws {
        let body = """
            This is the preamble.  It is to be ignored, though it
            is a handy place for composition agents to include an
            explanatory note to non-MIME conformant readers.

            --simple boundary

            This is implicitly typed plain US-ASCII text.
            It does NOT end with a linebreak.
            --simple boundary
            Content-type: text/plain; charset=us-ascii

            This is explicitly typed plain US-ASCII text.
            It DOES end with a linebreak.

            --simple boundary--

            This is the epilogue.  It is also to be ignored.
            """
        for lineBreak in ["\n", "\r\n"] {
            let text = body.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: lineBreak)
            let result = try readAllSplits(bytes(text), boundary: "simple boundary")
            #expect(result.fields == ["", "Content-type: text/plain; charset=us-ascii"])
            #expect(
                result.contents == [
                    "This is implicitly typed plain US-ASCII text.\(lineBreak)It does NOT end with a linebreak.",
                    "This is explicitly typed plain US-ASCII text.\(lineBreak)"
                        + "It DOES end with a linebreak.\(lineBreak)",
                ])
            #expect(result.isEnded && result.violation == nil && result.end == nil)
        }
    }

    /// A short form of the example in RFC 9110 §14.6.
    @Test("byteranges are read") func byteRanges() throws {
        let body = bytes(
            "--THIS\r\nContent-Type: application/pdf\r\nContent-Range: bytes 0-2/8\r\n\r\nabc\r\n"
                + "--THIS\r\nContent-Type: application/pdf\r\nContent-Range: bytes 6-7/8\r\n\r\n\r\n\r\n--THIS--\r\n")
        let result = try readAllSplits(body, boundary: "THIS")
        #expect(result.contents == ["abc", "\r\n"] && result.isEnded)
        #expect(result.fields[1] == "Content-Type: application/pdf|Content-Range: bytes 6-7/8")
    }

    @Test("Parts have their fields and their content") func contents() throws {
        for content in [
            "", "\r\n", "a\r", "\r", "a\r\n-", "a\r\n--", "--bX", "\r\n--c", "\r\r\n\r", "x--b", "\0\u{ff}\n\n",
            "\r\n\r\n--", "\n\r\n\r",
        ] {
            let result = try readAllSplits(bytes("--b\r\nA: b\r\n\r\n\(content)\r\n--b--"))
            #expect(
                result.contents == [content] && result.isEnded && result.fields == ["A: b"],
                "\(content.debugDescription)")
        }
    }

    /// RFC 2046 §5.1.1: a part may lack fields and content.
    @Test("Empty parts are read") func emptyParts() throws {
        #expect(
            try readAllSplits(bytes("--b\r\n\r\n--b\r\n\r\n\r\n--b\r\nA: b\r\n\r\n--b--")).contents == ["", "", ""])
        #expect(try readAllSplits(bytes("--b\n\n--b\n\n\n--b\nA: b\n\n--b--")).contents == ["", "", ""])
        #expect(try readAllSplits(bytes("--b--\r\n")) == readAllSplits(bytes("preamble\r\n--b--")))
        #expect(try readAllSplits(bytes("--b--")).isEnded)
    }

    @Test("Lines that only resemble a delimiter are content") func linesThatOnlyResembleADelimiterAreContent() throws {
        for line in [
            "--bc", "--b-", "--b-x", "--bb", "--b x", "--b\tx", "-b", "--", "--B", " --b", "--b\rx", "--b \r\r", "---b",
            "--b \0",
        ] {
            let result = try readAllSplits(bytes("\(line)\r\n--b\r\n\r\n1\r\n\(line)\r\n2\r\n--b--"))
            #expect(result.contents == ["1\r\n\(line)\r\n2"], "\(line)")
        }
        let blanks = String(repeating: " ", count: 128)
        #expect(
            try readAllSplits(bytes("--b\(blanks)\r\n\r\n1\r\n--b \t \n\n2\r\n--b--  \r\n")).contents == ["1", "2"],
            "padding")
        #expect(
            try readAllSplits(bytes("--b\r\n\r\n1\r\n--b\(blanks) \r\n2\r\n--b--")).contents == [
                "1\r\n--b\(blanks) \r\n2"
            ])
    }

    /// A multipart body inside another, whose boundary begins like the outer one.
    @Test("Nested multipart bodies are content of the outer part") func nested() throws {
        let inner = "--b2\r\n\r\nx\r\n--b2--\r\n"
        let result = try readAllSplits(bytes("--b\r\n\r\n\(inner)\r\n--b--\r\n"))
        #expect(result.contents == [inner])
        #expect(try readAllSplits(result.parts[0].content, boundary: "b2").contents == ["x"])
    }

    @Test("The streams of network cameras are read") func cameras() throws {
        let jpeg: [UInt8] = [0xFF, 0xD8, 0x0A, 0x0D, 0x0A, 0x2D, 0x2D, 0x0D, 0xFF, 0xD9]
        // The boundary parameter includes the dashes; no line break before the first delimiter; LF alone; mixed line
        // breaks.
        for (boundary, line, end) in [
            ("--myboundary", "--myboundary", "\r\n"), ("--myboundary", "----myboundary", "\r\n"),
            ("myboundary", "--myboundary", "\n"),
            ("--myboundary", "--myboundary", "\n"), ("----", "------", "\n"), ("----", "----", "\r\n"),
            ("---", "---", "\n"),
        ] {
            var body: [UInt8] = []
            for _ in 0..<3 {
                body +=
                    bytes("\(line)\(end)Content-Type: image/jpeg\(end)Content-Length: 10\(end)\(end)") + jpeg
                    + bytes(end)
            }
            let cut = try readAllSplits(body, boundary: boundary)
            #expect(
                cut.parts.map(\.content) == [jpeg, jpeg, jpeg] && cut.end == .truncatedMultipart, "\(boundary) \(line)")
            #expect(cut.parts.map(\.isComplete) == [true, true, false])
            #expect(cut.fields[2] == "Content-Type: image/jpeg|Content-Length: 10")
            let whole = try readAllSplits(body + bytes("\(line)--"), boundary: boundary)
            #expect(whole.parts.allSatisfy(\.isComplete) && whole.isEnded && whole.end == nil)
        }
        #expect(
            try readAllSplits(bytes("--b\nA: 1\r\nB: 2\n\r\nx\n--b\r\n\ny\r\n--b--")).contents == ["x", "y"], "mixed")
    }

    @Test("Fields of a part are checked like those of a message") func fields() throws {
        let result = try readAllSplits(
            bytes("--b\r\nA: \u{e9}\r\nX: 1\r\n folded\r\nX:2\r\n\r\n\r\n--b\nA: 1\n\tfolded\n\n\n--b--"))
        #expect(result.fields == ["A: \u{e9}|X: 1   folded|X: 2", "A: 1   folded"])
        for (head, code) in [
            ("A", WireViolation.Code.malformedFieldName), (": b", .malformedFieldName),
            ("A : b", .whitespaceBeforeColon), ("--b", .malformedFieldName),
            ("A: \0", .malformedFieldValue), ("A: b\rc", .malformedFieldValue), (" A: b", .obsoleteFolding),
            ("\rA: b", .malformedFieldName),
        ] {
            for end in ["\n", "\r\n"] {
                let result = try readAllSplits(bytes("--b\(end)\(head)\(end)\(end)x\(end)--b--"))
                #expect(result.violation == code && result.parts.isEmpty, "\(head.debugDescription)")
            }
        }
    }

    @Test("A body that ends too early is an error") func endTooEarly() throws {
        let body = bytes("preamble\r\n--b\r\nA: b\r\n\r\nx\r\ny\r\n--b\r\n\r\nz\r\n--b--")
        for count in 0..<body.count {
            let result = try readAllSplits(Array(body[..<count]))
            #expect(result.end == .truncatedMultipart && !result.isEnded && result.violation == nil)
            #expect(result.parts.last?.isComplete != true || result.parts.count == 1)
        }
        #expect(try readAllSplits(body).end == nil)
        #expect(try readAllSplits(bytes("no boundary at all")).end == .truncatedMultipart)
    }
}
