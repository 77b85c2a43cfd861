// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 7578 and the form-data rules of WHATWG HTML.
@Suite struct MultipartWriterTests {
    func head(_ part: MultipartFormPart) throws -> String {
        var writer = MultipartWriter(boundary: try MultipartBoundary("b"))
        var output: [UInt8] = []
        try writer.begin(part, into: &output)
        return String(decoding: output, as: UTF8.self)
    }

    @Test("A form is written") func aForm() throws {
        var writer = MultipartWriter(boundary: try MultipartBoundary("AaB03x"))
        #expect(writer.contentType == "multipart/form-data; boundary=AaB03x")
        var output: [UInt8] = []
        let parts = [
            MultipartFormPart(name: "submit-name"),
            MultipartFormPart(name: "files", fileName: "file1.txt", contentType: "text/plain; charset=utf-8"),
        ]
        for (part, content) in zip(parts, ["Larry", "\r\n"]) {
            try writer.begin(part, into: &output)
            output += bytes(content)
        }
        writer.end(into: &output)
        #expect(
            String(decoding: output, as: UTF8.self)
                == [
                    "--AaB03x", "Content-Disposition: form-data; name=\"submit-name\"", "", "Larry", "--AaB03x",
                    "Content-Disposition: form-data; name=\"files\"; filename=\"file1.txt\"",
                    "Content-Type: text/plain; charset=utf-8", "", "",
                    "", "--AaB03x--", "",
                ].joined(separator: "\r\n"))
        #expect(try readAllSplits(output, boundary: "AaB03x").contents == ["Larry", "\r\n"])
    }

    @Test("Names and file names are escaped") func escaping() throws {
        for (name, inName, inFileName) in [
            ("a\"b", "a%22b", "a%22b"), ("a\rb", "a%0D%0Ab", "a%0Db"), ("a\nb", "a%0D%0Ab", "a%0Ab"),
            ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
            ("\n\r", "%0D%0A%0D%0A", "%0A%0D"), ("\r\r\n\n", "%0D%0A%0D%0A%0D%0A", "%0D%0D%0A%0A"),
            ("a\\b", "a\\b", "a\\b"),
            ("%22", "%22", "%22"), ("\u{20ac}\u{1f600}", "\u{20ac}\u{1f600}", "\u{20ac}\u{1f600}"), ("", "", ""),
            (";=,'\t", ";=,'\t", ";=,'\t"),
            ("\r\nX: y\r\n\r\n--b--", "%0D%0AX: y%0D%0A%0D%0A--b--", "%0D%0AX: y%0D%0A%0D%0A--b--"),
        ] {
            #expect(try head(.init(name: name)) == "--b\r\nContent-Disposition: form-data; name=\"\(inName)\"\r\n\r\n")
            #expect(
                try head(.init(name: "n", fileName: name))
                    == "--b\r\nContent-Disposition: form-data; name=\"n\"; filename=\"\(inFileName)\"\r\n\r\n")
        }
        for bad in ["\0", "a\u{1b}", "\u{7f}", "\u{b}"] {
            #expect(violation { _ = try head(.init(name: bad)) } == .malformedFieldValue)
            #expect(violation { _ = try head(.init(name: "n", fileName: bad)) } == .malformedFieldValue)
        }
    }

    /// Names and types with characters that would begin a field or the content.
    @Test("A name or a type cannot forge fields or content") func injection() throws {
        for type in [
            "text/plain\r\nX: y", "text/plain\nX: y", "text/plain\r", "text/plain; a=\"\r\n\"",
            "text/plain; a=\"\\\n\"", "", "text", "text/plain\0",
            "text/plain; a=b\r\n\r\n--b--", "\r\ntext/plain", "text/plain; ; \n",
        ] {
            var output: [UInt8] = [1]
            var writer = MultipartWriter(boundary: try MultipartBoundary("b"))
            #expect(
                violation { try writer.begin(.init(name: "n", contentType: type), into: &output) }
                    == .malformedFieldValue, "\(type.debugDescription)")
            #expect(output == [1], "a refused part leaves nothing")
            try writer.begin(.init(name: "n"), into: &output)
            #expect(output.starts(with: [1] + bytes("--b\r\n")), "and is not counted")
        }
        #expect(
            try head(.init(name: "n", contentType: "text/plain; a=\"\u{e9}\"")).contains(
                "Content-Type: text/plain; a=\"\u{e9}\"\r\n"))
    }

    /// Written forms are read back with any content.
    @Test("A written form is read back") func roundTrip() throws {
        var random = Numbers(state: 7)
        for _ in 0..<100 {
            let boundary = try MultipartBoundary(random: (0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            var writer = MultipartWriter(boundary: boundary)
            var output: [UInt8] = []
            var contents: [[UInt8]] = []
            for number in 0..<Int(random.next() % 4) {
                contents.append(
                    (0..<Int(random.next() % 200)).map { _ in [0x0D, 0x0A, 0x2D, 0x30, 0xFF][Int(random.next() % 5)] })
                try writer.begin(.init(name: "n\(number)\"", fileName: "f;\\"), into: &output)
                output += contents[number]
            }
            writer.end(into: &output)
            let pieces = output.indices.map { output[$0...$0] }
            let result = run(
                MultipartReader(boundary: try MultipartBoundary(contentType: writer.contentType)), pieces, held: 200)
            #expect(
                result.parts.map(\.content) == contents && result.isEnded && result.end == nil
                    && result.violation == nil)
            for (number, part) in result.parts.enumerated() {
                let disposition = ContentDisposition(String(part.fields.dropFirst("Content-Disposition: ".count)))
                #expect(disposition?.name == "n\(number)%22" && disposition?.fileName == "f;\\")
            }
        }
    }

    @Test("A boundary is read from the media type, and invalid ones are refused") func boundaries() throws {
        func received(_ type: String) -> String? { try? MultipartBoundary(contentType: type).description }
        #expect(
            received("multipart/mixed; boundary=gc0pJq0M:08jU534c0p") == "gc0pJq0M:08jU534c0p",
            "unquoted, as the RFC warns")
        #expect(received("Multipart/X-Mixed-Replace;BOUNDARY=\"a b\"") == "a b")
        #expect(
            received("multipart/byteranges; boundary=[lka9uw3et5vxybtp87ghq23dpu7djv84nhls9p]")
                == "[lka9uw3et5vxybtp87ghq23dpu7djv84nhls9p]")
        #expect(received("multipart/mixed; charset=x; boundary=----=_Part_1.2; boundary=c") == "----=_Part_1.2")
        let seventy = String(repeating: "x", count: 70)
        #expect(received("multipart/mixed; boundary=\(seventy)") == seventy)
        for bad in [
            "", "multipart/mixed", "multipart/mixed; boundary", "multipart/mixed; boundary=",
            "multipart/mixed; boundary=\"\"", "text/plain; boundary=b",
            "multipart/mixed; boundary=\(seventy)x", "multipart/mixed; boundary=\"b \"",
            "multipart/mixed; boundary=\"b\u{e9}\"",
            "multipart/mixed; boundary=\"b\r\n\"", "multipart/mixed; boundary=\"\0\"", "boundary=b",
        ] {
            #expect(violation { _ = try MultipartBoundary(contentType: bad) } == .malformedBoundary, "\(bad)")
        }
        for bad in ["", "b ", "a[b", "a\"b", "a\r\nb", seventy + "x", "\u{e9}"] {
            #expect(violation { _ = try MultipartBoundary(bad) } == .malformedBoundary, "\(bad)")
        }
        #expect(
            MultipartWriter(boundary: try MultipartBoundary("a b:c")).contentType
                == "multipart/form-data; boundary=\"a b:c\"")
        #expect(violation { _ = try MultipartBoundary(random: [UInt8](repeating: 1, count: 15)) } == .malformedBoundary)
        let made = try MultipartBoundary(random: UInt8(0)..<16)
        #expect(
            made.description == "000102030405060708090A0B0C0D0E0F" && (try? MultipartBoundary(made.description)) == made
        )
        #expect(try MultipartBoundary(random: UInt8(0)..<200).bytes.count == 64)
    }
}
