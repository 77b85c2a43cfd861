// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct TranscriptTests {
    private func lines(_ text: String) -> [String] { TranscriptText.lines(text.utf8) }

    @Test("A line stands for its bytes and CR LF") func aLineStandsForItsBytesAndCRLF() {
        #expect(lines("a\r\nb\r\n") == ["a", "b"])
        #expect(lines("a\nb") == ["a\\n", "b\\"])
        #expect(lines("\r\n") == [""])
        #expect(lines("a\rb\r\r\n") == ["a\\x0db\\x0d"])
        #expect(lines("a\r") == ["a\\x0d\\"])
        #expect(lines("") == [])
    }

    @Test("Bytes that are not printable text are escaped") func bytesThatAreNotPrintableTextAreEscaped() {
        #expect(TranscriptText.lines([0x1B, 0x5B, 0xFF, 0x5C, 0x00]) == ["\\x1b[\\xff\\\\\\x00\\"])
        #expect(lines("é\r\n") == ["\\xc3\\xa9"])
    }

    @Test("Long lines are split") func longLinesAreBroken() {
        let broken = lines(String(repeating: "x", count: 200) + "\r\n")
        #expect(broken.map(\.count) == [97, 97, 8])
        #expect(broken[0].hasSuffix("\\") && !broken[2].hasSuffix("\\"))
    }

    private let request = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic c2VjcmV0\r\nCookie: id=secret\r\n\r\n"
    private let response = "HTTP/1.1 200 OK\r\nSet-Cookie: id=secret\r\n\r\nAuthorization: body\n"

    private func tell(_ transcript: inout Transcript, _ events: [WireTapEvent]) -> [String] {
        events.flatMap { transcript.lines($0) }
    }

    @Test("Secrets in heads are hidden") func secretsAreHiddenInHeads() {
        var transcript = Transcript(showsBodies: true, showsSecrets: false)
        let told = tell(
            &transcript,
            [
                .connected("tcp(1)", connection: 1), .sent(Array(request.utf8), connection: 1),
                .received(Array(response.utf8), connection: 1), .closed(connection: 1),
            ])
        #expect(
            told == [
                "* connection 1: tcp(1)",
                "> GET / HTTP/1.1", "> Host: a", "> Authorization: Basic [hidden]", "> Cookie: [hidden]", "> ",
                "< HTTP/1.1 200 OK", "< Set-Cookie: [hidden]", "< ", "< Authorization: body\\n",
                "* connection 1 closed",
            ])
    }

    @Test("A secret is hidden also on continued lines, and behind a name with a blank") func continuedSecrets() {
        var transcript = Transcript(showsBodies: false, showsSecrets: false)
        let head =
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1;\r\n b=secret\r\n\tc=secret\r\nX-A: d\r\n e\r\n"
            + "Set-Cookie : id=secret\r\nAuthorization: x\r\n secret"
        let told = tell(
            &transcript,
            [
                .connected("tcp(1)", connection: 1), .sent(Array(request.utf8), connection: 1),
                .received(Array(head.utf8), connection: 1), .closed(connection: 1),
            ])
        #expect(
            Array(told.suffix(10)) == [
                "< HTTP/1.1 200 OK", "< Set-Cookie: [hidden]", "<  [hidden]", "<  [hidden]", "< X-A: d", "<  e",
                "< Set-Cookie : [hidden]", "< Authorization: [hidden]", "<  [hidden]", "* connection 1 closed",
            ])
    }

    @Test("Pieces of any size yield the same lines", arguments: 1...12)
    func piecesOfAnySizeTellTheSame(_ size: Int) {
        func told(_ size: Int) -> [String] {
            var transcript = Transcript(showsBodies: false, showsSecrets: false)
            var events: [WireTapEvent] = [.sent(Array(request.utf8), connection: 1)]
            let bytes = Array(("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + response).utf8)
            for start in stride(from: 0, to: bytes.count, by: size) {
                events.append(.received(Array(bytes[start..<min(bytes.count, start + size)]), connection: 1))
            }
            return tell(&transcript, events)
        }
        #expect(told(size) == told(10_000))
        #expect(told(size).joined().contains("secret") == false)
    }

    @Test("A trace shows frames and packets, -v why a load was not sent over HTTP/3; neither shows a log")
    func http3() {
        let events: [WireTapEvent] = [
            .log([1], connection: 1), .frame("QUIC initial 0, 1200 bytes: crypto", isSent: true, connection: 0),
            .tookTCP("no connection within 300 ms"),
        ]
        var (trace, heads) = (
            Transcript(showsBodies: true, showsSecrets: false), Transcript(showsBodies: false, showsSecrets: false)
        )
        let why = "* not over HTTP/3: no connection within 300 ms"
        #expect(tell(&trace, events) == ["> QUIC initial 0, 1200 bytes: crypto", why])
        #expect(tell(&heads, events) == [why])
    }

    @Test("-v shows heads only") func headsAloneForVerbose() {
        var transcript = Transcript(showsBodies: false, showsSecrets: true)
        let told = tell(
            &transcript,
            [
                .sent(Array("POST / HTTP/1.1\r\nHost: a\r\n\r\nbody".utf8), connection: 1),
                .sent(Array("more\r\nAuthorization: x\r\n\r\n".utf8), connection: 1),
                .received(Array(response.utf8), connection: 1),
                .sent(Array(request.utf8), connection: 1),
            ])
        #expect(
            told == [
                "* connection 1",
                "> POST / HTTP/1.1", "> Host: a", "> ",
                "< HTTP/1.1 200 OK", "< Set-Cookie: id=secret", "< ",
                "* connection 1 reused",
                "> GET / HTTP/1.1", "> Host: a", "> Authorization: Basic c2VjcmV0", "> Cookie: id=secret", "> ",
            ])
    }

    @Test("A truncated head hides its secrets, too") func aHeadCutOffHidesItsSecretToo() {
        var transcript = Transcript(showsBodies: true, showsSecrets: false)
        let told = tell(
            &transcript,
            [
                .sent(Array("GET / HTTP/1.1\r\n\r\n".utf8), connection: 1),
                .received(Array("HTTP/1.1 200 OK\r\nSet-Cookie: id=sec".utf8), connection: 1), .closed(connection: 1),
            ])
        #expect(told.last == "* connection 1 closed")
        #expect(told.joined().contains("sec") == false)
        #expect(told.contains("< Set-Cookie: [hidden]"))
    }

    @Test("Passwords and tokens in URLs are hidden in heads") func passwordsAndTokensOfURLsAreHiddenInHeads() {
        let head = """
            HTTP/1.1 302 Found\r
            Location: https://ada:s3cret@a.test/cb?code=s3cret&page=2#access_token=s3cret\r
            Content-Location: //ada:s3cret@a.test/\r
            Refresh: 0; url=https://ada:s3cret@a.test/\r
            Link: <https://ada:s3cret@a.test/?sig=s3cret>; rel=next\r
            X-Amz-Security-Token: s3cret\r
            \r

            """
        let request =
            "GET /?token=s3cret HTTP/1.1\r\nReferer: http://ada:s3cret@a.test/\r\nX-Goog-Api-Key: s3cret\r\n\r\n"
        for showsSecrets in [false, true] {
            var transcript = Transcript(showsBodies: true, showsSecrets: showsSecrets)
            let told = tell(
                &transcript,
                [
                    .connected("tcp(1)", connection: 1), .sent(Array(request.utf8), connection: 1),
                    .received(Array(head.utf8), connection: 1),
                    .head(
                        "GET /?token=s3cret", ["Location": "http://ada:s3cret@b.test/", "X-Api-Key": "s3cret"],
                        isSent: true, connection: 1),
                ])
            #expect(told.joined().contains("s3cret") == showsSecrets, "\(told)")
            guard !showsSecrets else { continue }
            #expect(told.contains("> GET /?token=(removed) HTTP/1.1"))
            #expect(told.contains("< Location: https://a.test/cb?code=(removed)&page=2#access_token=(removed)"))
        }
    }

    @Test("A truncated Location hides its password, too") func aLocationCutOffHidesItsPasswordToo() {
        var transcript = Transcript(showsBodies: true, showsSecrets: false)
        let told = tell(
            &transcript,
            [
                .sent(Array("GET / HTTP/1.1\r\n\r\n".utf8), connection: 1),
                .received(Array("HTTP/1.1 302 Found\r\nLocation: https://ada:sec".utf8), connection: 1),
                .closed(connection: 1),
            ])
        #expect(told.joined().contains("sec") == false, "\(told)")
    }
}
