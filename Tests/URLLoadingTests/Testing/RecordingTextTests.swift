// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@testable import URLLoadingTesting

/// The file format: written recordings are read back, and damaged ones are refused with the line number.
struct RecordingTextTests {
    static let everything: Recording = {
        let failure = Recording.Failure(reason: .idleTimeout, phase: .receiving, party: .remote, detail: "two\nlines ")
        var plain = Recording.Response(
            .init(.ok, headers: ["Content-Type": "text/plain", "X-Empty": "", "X-Odd": "a\\b"]),
            at: .microseconds(12_500), expectedLength: 13,
            pieces: [
                .init(Array("hello,\n\n".utf8), at: .milliseconds(13)),
                .init(Array("world! ".utf8), at: .microseconds(13_050)),
            ])
        plain.trailers = ["Sum": "7"]
        var other = Recording.Response(nil, at: .milliseconds(1), pieces: [.init(Array(0...255), at: .milliseconds(2))])
        other.url = URL(string: "stub://elsewhere/")
        other.mediaType = MediaType("text/plain; charset=utf-8")
        other.redirect = .init(method: .get, url: URL(string: "stub://third/")!)
        other.refusedToken = 3
        other.fullLength = 1_000
        return Recording([
            .init(
                .post, URL(string: "https://example.org/a?b=c#d")!, headers: ["Accept": "*/*", "Accept": "text/*"],
                body: .init(Array("{}\r\n".utf8)), answer: plain, ending: .complete(at: .milliseconds(14))),
            .init(
                "ODD METHOD", URL(string: "stub://host/")!,
                body: .init([0xFF, 0xFE], of: BodySum(count: 9, digest: 0xABC)),
                began: .milliseconds(3), answer: other, ending: .open),
            .init(
                .get, URL(string: "http://down.example/")!, began: .seconds(1_000),
                ending: .failed(failure, at: .seconds(1_060))),
        ])
    }()

    @Test("a written recording is read back, and written equally")
    func roundTrip() throws {
        let text = Self.everything.description
        let read = try Recording(text: text)
        #expect(read == Self.everything && read.description == text)
        #expect(read.exchanges[0].answer?.http?.headers["X-Odd"] == "a\\b")
        // An editor of another system may have saved it.
        let elsewhere = "\u{FEFF}" + text.replacing("\n", with: "\r\n")
        #expect(try Recording(text: elsewhere) == Self.everything)
        #expect(try Recording(text: "urlloading recording 1\n").exchanges.isEmpty)
    }

    /// The recording that the guide shows.
    static let ofGuide = """
        urlloading recording 1

        request POST https://example.org/greet at 0
        > Content-Type: text/plain
        body
        + world
        answer 200 HTTP/1.1 at 12.5
        < Content-Type: text/plain
        length 13
        piece at 12.5
        | hello,
        + world!
        end at 14

        """

    @Test("the text has the form that the guide shows")
    func text() throws {
        let recording = try Recording(text: Self.ofGuide)
        #expect(recording.description == Self.ofGuide)
        #expect(recording.exchanges[0].answer?.pieces.first?.bytes == Array("hello,\nworld!".utf8))
        // By hand, without times.
        let byHand = try Recording(
            text: "urlloading recording 1\n# mine\nrequest GET http://a/\nanswer 200 HTTP/1.1\npiece\n+ hi\n\nend\n")
        #expect(byHand.exchanges.map(\.ending) == [.complete(at: .zero)])
    }

    @Test(
        "bytes of every kind come back",
        arguments: [
            [], [0x0A], [0x0A, 0x0A], [0x20], [0x09, 0x0A, 0x20], [0x5C, 0x6E], [0x0D, 0x0A],
            Array("ä\u{2028}€ \n x\t".utf8),
            Array("€".utf8.dropLast()), Array(0...255), [UInt8](repeating: 0, count: 200), [0x23, 0x20],
            [0xEF, 0xBB, 0xBF],
        ] as [[UInt8]])
    func bytes(_ bytes: [UInt8]) throws {
        let lines = EscapedText.content(bytes)
        let back = try lines.flatMap { line in
            try #require(EscapedText.content(mark: line.utf8.first!, Array(line.utf8.dropFirst(2))[...]))
        }
        #expect(back == bytes, "\(lines)")
        #expect(
            lines.allSatisfy { line in !line.utf8.contains { $0 < 0x20 && $0 != 9 || $0 == 0x7F } && line.last != " " })
    }

    @Test("random bytes come back")
    func randomBytes() throws {
        var random = SeededGenerator(seed: 7)
        let alphabet: [UInt8] = Array("a \t\r\n\\\u{E4}\u{20AC}".utf8) + [0x00, 0x7F, 0xFF]
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in alphabet.randomElement(using: &random)!
            }
            var recording = Self.everything
            recording.exchanges[0].body = .init(bytes)
            #expect(try Recording(text: recording.description) == recording)
        }
    }

    @Test("a file that ends anywhere is refused, or is the exchanges before")
    func truncation() {
        let text = Array(Self.everything.description.utf8)
        let whole = Self.everything.exchanges
        for length in text.indices {
            do {
                let read = try Recording(text: text[..<length])
                #expect(read.exchanges.elementsEqual(whole.prefix(read.exchanges.count)), "\(length)")
                #expect(text[length - 1] == 0x0A)
            } catch {
                #expect(error.line <= text[..<length].count { $0 == 0x0A } + 1 && error.line > 0)
            }
        }
    }

    @Test("every line that is damaged is named, or means something", arguments: 1...38)
    func damage(_ number: Int) {
        var lines = Self.everything.description.split(separator: "\n", omittingEmptySubsequences: false)
        guard number < lines.count - 1, !lines[number].isEmpty else { return }
        lines[number] = "nonsense"
        let error = #expect(throws: RecordingError.self) { try Recording(text: lines.joined(separator: "\n")) }
        #expect(error?.line == number + 1, "\(lines[number - 1]): \(error.map { "\($0)" } ?? "-")")
    }

    @Test(
        "an error in a file is described in words",
        arguments: [
            ("", "line 1: the file ends within a line"),
            ("urlloading recording 3\n", "line 1: not \"urlloading recording 1\", or 2"),
            (
                "urlloading recording 2\nrequest GET http://a/\nanswer 401 HTTP/1.1\ntoken -1\nopen\n",
                "line 4: not a token's number"
            ),
            ("urlloading recording 1\nrequest GET\n", "line 2: not a method and a URL"),
            ("urlloading recording 1\nrequest GET http://a/ at x\nend\n", "line 2: not a number of milliseconds: x"),
            ("urlloading recording 1\nrequest GET http://a/ and so on\nend\n", "line 2: \"and so on\" is too much"),
            ("urlloading recording 1\nrequest GET http://a/\nanswer 99 HTTP/1.1\nend\n", "line 3: not a status"),
            ("urlloading recording 1\nrequest GET http://a/\nanswer 200 HTTP\nend\n", "line 3: not a version of HTTP"),
            (
                "urlloading recording 1\nrequest GET http://a/\nanswer\npiece\n= !\nend\n",
                "line 5: \"=\": damaged bytes"
            ),
            (
                "urlloading recording 1\nrequest GET http://a/\nanswer\npiece\n+ \\q\nend\n",
                "line 5: \"+\": damaged bytes"
            ),
            (
                "urlloading recording 1\nrequest GET http://a/\nanswer\npiece\nend\n",
                "line 5: \"end\": no bytes of a piece"
            ),
            ("urlloading recording 1\nrequest GET http://a/\n> a\nopen\n", "line 3: not a field"),
            (
                "urlloading recording 1\nrequest GET http://a/\n",
                "line 2: the file ends here: not how the exchange of line 2 ended"
            ),
            (
                "urlloading recording 1\nrequest GET http://a/\nfailed no\n",
                "line 3: not the reason of a failure, its code, phase and party"
            ),
        ])
    func words(_ text: String, _ words: String) {
        let error = #expect(throws: RecordingError.self) { try Recording(text: text) }
        #expect(error.map { "\($0)" } == words)
    }
}
