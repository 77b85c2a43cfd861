// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 959 §4.2. Security 62.
@Suite struct FTPReplyTests {
    static func run(_ pieces: [[UInt8]], limit: Int = 64 * 1024) -> ([FTPReply], WireViolation.Code?) {
        var parser = FTPReplyParser(limit: limit)
        var replies: [FTPReply] = []
        do throws(WireViolation) {
            for piece in pieces {
                var consumed = 0
                while true {
                    let reply = try piece.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
                        try parser.next(UnsafeRawBufferPointer(bytes), consumed: &consumed)
                    }
                    guard let reply else { break }
                    replies.append(reply)
                }
                #expect(consumed == piece.count)
            }
        } catch { return (replies, error.code) }
        return (replies, nil)
    }

    func read(_ text: String, limit: Int = 64 * 1024) -> ([FTPReply], WireViolation.Code?) {
        let stream = bytes(text)
        let whole = Self.run([stream], limit: limit)
        let single = Self.run(stream.map { [$0] }, limit: limit)
        #expect(single.0 == whole.0 && single.1 == whole.1)
        for cut in stream.indices {
            let halves = Self.run([Array(stream[..<cut]), Array(stream[cut...])], limit: limit)
            #expect(halves.0 == whole.0 && halves.1 == whole.1)
        }
        return whole
    }

    @Test("Replies of one and of several lines are read") func lines() {
        #expect(
            read("220 ready\r\n331\r\n230 \r\n").0 == [
                FTPReply(220, ["ready"]), FTPReply(331, [""]), FTPReply(230, [""]),
            ])
        #expect(read("220 no CR\n").0 == [FTPReply(220, ["no CR"])])
        let feat = "211-Features:\r\n SIZE\r\n REST STREAM\r\n211 End\r\n"
        #expect(read(feat).0 == [FTPReply(211, ["Features:", " SIZE", " REST STREAM", "End"])])
    }

    @Test("A line inside a reply may look like a reply")
    func nested() {
        let text = "123-first\r\n234 not the end\r\n123-still\r\n123more\r\n\r\n123 last\r\n"
        #expect(read(text).0 == [FTPReply(123, ["first", "234 not the end", "still", "123more", "", "last"])])
    }

    @Test("A multi-line reply ends with its code and a space; the code alone is text")
    func bareCode() {
        #expect(read("220-hello\r\n220\r\n220 end\r\n").0 == [FTPReply(220, ["hello", "220", "end"])])
        #expect(read("211-\r\n211\r\n").0.isEmpty)
        #expect(read("211-\r\n211 \r\n").0 == [FTPReply(211, ["", ""])])
    }

    @Test(
        "Malformed replies are refused",
        arguments: [
            "HTTP/1.1 200 OK\r\n", "\r\n", "22\r\n", "22x\r\n", "220x\r\n", "099 low\r\n", "600 high\r\n",
            "SSH-2.0\r\n",
        ])
    func malformed(text: String) { #expect(read(text).1 == .malformedFTPReply) }

    @Test("An endless line and endless lines are refused")
    func limits() {
        #expect(Self.run([bytes("220 " + String(repeating: "x", count: 200))], limit: 100).1 == .ftpReplyTooLarge)
        #expect(
            Self.run([bytes("220-\r\n" + String(repeating: "x\r\n", count: 100))], limit: 100).1 == .ftpReplyTooLarge)
        // The limit applies to each reply, not to the connection.
        #expect(Self.run([bytes(String(repeating: "220 x\r\n", count: 100))], limit: 100).0.count == 100)
    }

    @Test(
        "The port is read from a 229 reply (RFC 2428 §3)",
        arguments: [
            ("Entering Extended Passive Mode (|||6446|)", 6446), ("(!!!1!)", 1), ("x (|||65535|) y", 65535),
            ("(|||0|)", nil),
            ("(|||65536|)", nil), ("(|||6446)", nil), ("(||6446|)", nil), ("(|1|10.0.0.1|6446|)", nil),
            ("|||6446|", nil), ("(|||+646|)", nil), ("(1111111)", nil), ("(", nil), ("", nil),
        ] as [(String, UInt16?)])
    func extendedPorts(text: String, port: UInt16?) { #expect(FTPPort.extended(text) == port) }

    @Test(
        "The port is read from a 227 reply, wherever the numbers are (RFC 1123 §4.1.2.6)",
        arguments: [
            ("Entering Passive Mode (10,0,0,1,4,1).", 1025), ("=127,0,0,1,255,255", 65535), ("(10,0,0,1,4)", nil),
            ("(10,0,0,1,256,1)", nil),
            ("(10,0,0,1,0,0)", nil), ("(10,0,0,1,4,1,9)", nil), ("(10,0,0,,4,1)", nil), ("none", nil),
            ("(1000,0,0,1,4,1)", nil),
        ] as [(String, UInt16?)])
    func passivePorts(text: String, port: UInt16?) { #expect(FTPPort.passive(text) == port) }

    @Test(
        "URL paths become FTP paths and types (RFC 1738 §3.2.2)",
        arguments: [
            ("/a/b", "a/b", false, false), ("/%2Fetc/motd", "/etc/motd", false, false), ("", "", true, false),
            ("/", "", true, false),
            ("/a/", "a/", true, false), ("/a;type=A", "a", false, true), ("/a;type=d", "a", true, false),
            ("/a;type=i", "a", false, false),
            ("/a;b", "a;b", false, false), ("/%C3%A4", "ä", false, false),
        ])
    func paths(url: String, path: String, isDirectory: Bool, isText: Bool) throws {
        let parsed = try FTPPath(url)
        #expect(parsed.bytes == bytes(path) && parsed.isDirectory == isDirectory && parsed.isText == isText)
    }

    @Test(
        "A path cannot forge a command (security 61)",
        arguments: ["/a%0d%0aDELE%20b", "/a%0Ab", "/a%00b", "/a;type=x", "/a%zz"])
    func badPaths(url: String) { #expect(throws: WireViolation.self) { _ = try FTPPath(url) } }
}
