// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading
@testable import urlload

struct ReportTests {
    @Test(
        "Strings are quoted as JSON",
        arguments: [
            ("", #""""#), ("a\"b\\c", #""a\"b\\c""#), ("\r\n\t\0\u{1B}\u{7F}", ##""\r\n\t\u0000\u001b\u007f""##),
            ("é🙂", #""é🙂""#),
        ])
    func textIsQuoted(_ text: String, _ json: String) { #expect(JSONText.text(text).description == json) }

    @Test(
        "Seconds have six decimals",
        arguments: [(0.0, "0.000000"), (0.0000014, "0.000001"), (12.3456789, "12.345679"), (-1, "0.000000")])
    func secondsHaveSixDigits(_ seconds: Double, _ json: String) {
        #expect(JSONText.seconds(seconds).description == json)
    }

    @Test("A report is one line with fields in a fixed order") func aReportIsOneLineInAFixedOrder() {
        var headers: Headers = ["Content-Type": "text/plain", "Set-Cookie": "a=1"]
        headers.append(.setCookie, "b=2")
        var report = Report(url: "http://a/")
        report.head = HTTPHead(status: .ok, version: .http11, headers: headers)
        report.bytes = 5
        report.redirects = [(302, "http://a/b")]
        report.timings.total = 0.25
        #expect(
            report.json.description == #"""
                {"url":"http://a/","effectiveURL":null,"status":200,"version":"HTTP/1.1",\#
                "headers":{"content-type":["text/plain"],"set-cookie":["a=1","b=2"]},"bytes":5,"file":null,\#
                "timings":{"resolve":null,"connect":null,"tls":null,"firstByte":null,"total":0.250000},\#
                "reused":false,"redirects":[{"status":302,"url":"http://a/b"}],"error":null}
                """#)
    }

    @Test("An error has reason, code, phase and party") func anErrorHasReasonCodePhaseAndParty() {
        let failure = Report.Failure(LoadError(.hostNotFound, phase: .resolving, party: .system, detail: "x.example"))
        #expect(
            failure.json.description
                == #"{"reason":"hostNotFound","code":-1003,"phase":"resolving","party":"system","#
                + #""detail":"x.example","proxy":null,"exitCode":6}"#
        )
        #expect(ErrorWords.make(failure, in: .curl) == "the host name does not exist (hostNotFound, resolving)")
    }

    @Test("An error of a proxy is told apart from the server's") func anErrorAtAProxyIsNotTheServers() throws {
        let proxy = try Proxy("http://u:SECRET@p.example:3128")
        func words(_ error: LoadError) -> String { ErrorWords.make(Report.Failure(error.at(proxy)), in: .curl) }
        #expect(
            words(LoadError(.connectionRefused, phase: .connecting, party: .remote))
                == "at the proxy http://p.example:3128: no program listens there (connectionRefused, connecting)"
        )
        #expect(
            words(LoadError(.hostNotFound, phase: .resolving, party: .system, detail: "p.example"))
                == "at the proxy http://p.example:3128: its host name does not exist (proxyNotFound, resolving)")
        #expect(
            words(LoadError(.proxyRefused, phase: .connecting, party: .remote, detail: "it answered 403 Forbidden"))
                == "at the proxy http://p.example:3128: it refused to connect to the server "
                + "(proxyRefused, connecting): it answered 403 Forbidden"
        )
        #expect(
            words(LoadError(.connectionLost, phase: .waiting, party: .remote))
                == "at the proxy http://p.example:3128: it closed the connection (connectionLost, waiting)")
        #expect(
            words(LoadError(.malformedSOCKSReply, phase: .connecting, party: .remote, detail: "the reply is malformed"))
                == "at the proxy http://p.example:3128: the reply is malformed (malformedSOCKSReply, connecting)")
        let json = Report.Failure(LoadError(.connectionLost, phase: .waiting, party: .remote).at(proxy)).json
            .description
        #expect(json.contains(#""proxy":"http://p.example:3128""#) && !json.contains("SECRET"))
    }

    @Test("A Unix socket without a file is told apart from one on which no program listens", arguments: [false, true])
    func unixSockets(isAtProxy: Bool) throws {
        for words in ["the socket file /run/a does not exist", "no program listens on the Unix socket /run/a"] {
            var error = LoadError(.connectionRefused, phase: .connecting, party: .remote, detail: words)
            if isAtProxy { error = error.at(try Proxy("http://p.example:3128")) }
            #expect(
                ErrorWords.make(Report.Failure(error), in: .curl)
                    == (isAtProxy ? "at the proxy http://p.example:3128: " : "")
                    + "\(words) (connectionRefused, connecting)")
        }
    }

    @Test("A head of HTTP/2 has no reason phrase") func headsOfHTTP2HaveNoPhrase() {
        #expect(
            HeadText.make(HTTPHead(status: .ok, version: .http11, headers: ["A": "b"]))
                == "HTTP/1.1 200 OK\r\nA: b\r\n\r\n")
        #expect(HeadText.make(HTTPHead(status: .notFound, version: .http2, headers: [:])) == "HTTP/2 404 \r\n\r\n")
    }

    @Test("Names of resume notes have at most 255 bytes") func namesOfNotesAreNeverTooLong() {
        #expect(Continuation.notesName("file") == ".file.urlload")
        for count in [240, 243, 244, 250, 255] {
            let name = String(repeating: "a", count: count)
            #expect((Continuation.notesName(name) + ".new").utf8.count <= 255)
            #expect(Continuation.notesName(name) != Continuation.notesName(String(name.dropLast()) + "b"))
        }
        #expect((Continuation.notesName(String(repeating: "🙂", count: 63)) + ".new").utf8.count <= 255)
    }
}

struct ExitCodeTests {
    @Test(
        "Every reason has its exit code",
        arguments: [
            (LoadError.Reason.cancelled, ExitCode.interrupted), (.unsupportedScheme, .unsupportedScheme),
            (.badURL, .badURL),
            (.hostNotFound, .name), (.lookupFailed, .name), (.connectionRefused, .connect), (.unreachable, .connect),
            (.idleTimeout, .timeout), (.connectTimeout, .timeout), (.resourceTimeout, .timeout),
            (.certificateUntrusted, .certificate),
            (.certificateNameMismatch, .certificate), (.notTLS, .handshake), (.noCommonTLSVersion, .handshake),
            (.trustRootsUnavailable, .roots), (.tooManyRedirects, .redirect), (.badRedirect, .redirect),
            (.connectionLost, .connectionLost), (.truncated, .truncated), (.notHTTP, .unsupportedScheme),
            (.malformedChunkSize, .connectionLost), (.contentDecodingFailed, .contentCoding),
            (.contentTooLarge, .tooLarge), (.streamReset, .streamReset), (.headTooLarge, .headTooLarge),
            (.conflictingContentLength, .protocolViolation), (.notHTTP2, .http2),
        ])
    func everyReasonHasACode(_ reason: LoadError.Reason, _ code: ExitCode) {
        #expect(ExitCode(LoadError(reason, phase: .receiving, party: .remote)) == code)
    }

    @Test("A connection that is closed without an answer has a code of its own")
    func noResponse() {
        let closed = LoadError.closedWithoutAnswer(.waiting)
        // The words decide nothing.
        #expect(ExitCode(closed.adding("at the first attempt")) == .noResponse)
        let told = LoadError(.connectionLost, phase: .waiting, party: .remote, detail: closed.detail)
        #expect(ExitCode(told) == .connectionLost)
        let reset = LoadError(.connectionLost, phase: .waiting, party: .remote, detail: "Connection reset by peer")
        #expect(ExitCode(closed) == .noResponse && ExitCode(reset) == .connectionLost)
    }

    @Test("A request that cannot be sent is a usage error") func aRequestThatCannotBeSentIsAUsageError() {
        #expect(ExitCode(LoadError(.badRequest, phase: .sending, party: .local)) == .usage)
        #expect(ExitCode(LoadError(.bodyUnavailable, phase: .sending, party: .local)) == .other)
    }
}
