// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct WaterfallLinesTests {
    private func row(
        _ url: String, _ spans: [(Waterfall.Stage, Int, Int)], status: Status? = .ok, connection: Int? = 1,
        marks: [Waterfall.Mark] = [], error: String? = nil, protocolName: String? = "h2"
    ) -> Waterfall.Row {
        Waterfall.Row(
            .get, url, status: status, error: error, connection: connection,
            protocolName: connection == nil ? nil : protocolName, marks: marks,
            spans: spans.map { .init($0.0, from: .milliseconds($0.1), to: .milliseconds($0.2)) })
    }

    private var waterfall: Waterfall {
        Waterfall(rows: [
            row(
                "https://a.test/first",
                [(.queued, 0, 10), (.lookup, 10, 20), (.connect, 20, 40), (.tls, 40, 60), (.waiting, 60, 80)]),
            row("https://a.test/second", [(.waiting, 60, 90), (.receiving, 90, 100)], marks: [.redirect, .retry]),
            row("https://a.test/cached", [(.receiving, 50, 51)], connection: nil, marks: [.cache]),
            row(
                "https://a.test/", [(.connect, 70, 75)], status: nil, connection: nil, marks: [.failure],
                error: "lost"),
        ])
    }

    @Test("lines by connection, with lanes, marks, times and the slowest")
    func lines() {
        let lines = WaterfallLines.make(waterfall, width: 100, hasColors: false)
        #expect(lines[0].hasPrefix(". queued  n name  c connect  t TLS  - waiting  = receiving  \u{2192} redirect"))
        #expect(lines[1] == "connection 1 h2, 2 requests, up to 2 at a time")
        #expect(lines[2].hasPrefix("1 200 /first ") && lines[2].hasSuffix(" 80 ms"))
        #expect(
            lines[2].contains(".....nnnnnnccccccccccctttttttttttt")
                || lines[2].contains(".....nnnnnnccccccccccctttttttttt"))
        #expect(lines[3].hasPrefix("2 \u{2192}\u{21BB} 200 /second ") && lines[3].hasSuffix("=     40 ms"))
        #expect(lines[4] == "no connection")
        #expect(lines[5].hasPrefix(" \u{2261} 200 /cached ") && lines[6].hasPrefix(" ! lost a.test/ "))
        #expect(lines.last == "slowest: 80 ms  GET https://a.test/first")
        #expect(WaterfallLines.make(Waterfall(rows: []), width: 80, hasColors: false) == ["no request was made"])
    }

    @Test("no line is wider than the terminal", arguments: [1, 40, 80, 200], [false, true])
    func width(_ width: Int, _ hasColors: Bool) {
        let long = row("https://a.test/" + String(repeating: "ä", count: 500), [(.waiting, 0, 500)])
        let lines = WaterfallLines.make(Waterfall(rows: waterfall.rows + [long]), width: width, hasColors: hasColors)
        for line in lines { #expect(line.replacing(/\u{1B}\[\d+m/, with: "").count <= max(width, 40), "\(line)") }
    }

    @Test("without colours there is no escape sequence; a server's control characters do not reach the terminal")
    func control() {
        let hostile = Waterfall(rows: [
            row("https://a.test/\u{1B}[2J\u{9B}1m", [(.waiting, 0, 1)], protocolName: "\u{1B}]0;x\u{7}")
        ])
        let text = WaterfallLines.make(hostile, width: 80, hasColors: false).joined()
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
    }

    @Test(
        "a duration is shown with three digits at most, in its own unit",
        arguments: [
            (Duration.zero, "0.0 ms"), (.microseconds(420), "0.4 ms"), (.milliseconds(12), "12 ms"),
            (.microseconds(9_960), "10 ms"), (.microseconds(999_600), "1.0 s"), (.milliseconds(1250), "1.3 s"),
            (.seconds(90), "90.0 s"),
        ])
    func times(_ duration: Duration, _ text: String) { #expect(TimeText.make(duration) == text) }
}
