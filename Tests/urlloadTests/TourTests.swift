// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import urlload

@Suite(.timeLimit(.minutes(4)))
struct TourTests {
    @Test("The arguments of the tour are parsed")
    func arguments() throws {
        #expect(try Tour.parse([])?.steps == [])
        #expect(try Tour.parse(["stub", "--no-color"])?.steps == ["stub"])
        #expect(try Tour.parse(["--list"])?.lists == true)
        #expect(try Tour.parse(["--help"]) == nil)
        #expect(throws: UsageError.self) { try Tour.parse(["nowhere"]) }
    }

    @Test("The code that a step shows is the code that it runs")
    func code() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/urlload/Tour/TourStep.swift")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { $0.drop { $0 == " " } }
        for step in TourStep.all {
            for line in step.code.split(separator: "\n").map({ $0.drop { $0 == " " } }) {
                // Once as shown, with escaped backslashes, and once as it runs.
                let shown = lines.count { $0.split(separator: "\\\\").joined(separator: "\\") == line }
                #expect(shown >= 2, "\(step.name): \(line)")
            }
        }
    }

    @Test(
        "Each step runs, fits into 80 columns and prints its result",
        arguments: [
            ("stream", ["one after", "four after"]), ("redirect", ["302", "It is here now."]),
            ("refusal", ["cancelled (deciding", "connections left: empty"]),
            ("deadline", ["302", "the redirect itself"]),
            ("timeout", ["idleTimeout (waiting", "the remote side, code -1001"]),
            ("cancel", ["running 65536/50000000", "failed(cancelled)"]),
            ("stub", ["Hello, world! (text/plain)"]), ("events", ["sent +16 16", "completed", "16 bytes arrived"]),
        ])
    func step(_ name: String, _ outcomes: [String]) async throws {
        let step = try #require(TourStep.all.first { $0.name == name })
        let text = await Tour(Tour.Options(usesColor: false)).show(step, 1, of: 8)
        for outcome in outcomes { #expect(text.contains(outcome), "\(text)") }
        #expect(!text.contains("  ! "))
        for line in text.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    }

    @Test("The middle of a long drawing is omitted")
    func shortened() {
        let lines = Tour.shortened((1...100).map { "\($0) " + String(repeating: "x", count: 100) })
        #expect(lines.count == 25 && lines[18] == "… 76 more lines …" && lines.allSatisfy { $0.count <= 76 })
    }
}
