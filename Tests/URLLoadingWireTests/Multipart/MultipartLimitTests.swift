// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct MultipartLimitTests {
    static let small: MultipartLimits = {
        var limits = MultipartLimits()
        limits.headSize = 40
        limits.fieldCount = 3
        limits.partCount = 2
        limits.preambleSize = 20
        limits.epilogueSize = 10
        return limits
    }()

    /// Each limit is exact, and the reader buffers no more than it.
    @Test("Parts, heads and preambles have limits") func limits() throws {
        func x(_ count: Int) -> String { String(repeating: "x", count: count) }
        for (body, code) in [
            ("\(x(18))\r\n--b--", nil), ("\(x(19))\r\n--b--", .multipartPreambleTooLarge),
            (x(21), .multipartPreambleTooLarge),
            (String(repeating: "\n", count: 21), .multipartPreambleTooLarge),
            ("--b--\(x(10))", nil), ("--b--\(x(11))", .multipartEpilogueTooLarge),
            ("--b\r\nA: \(x(33))\r\n\r\n\r\n--b--", nil), ("--b\r\nA: \(x(34))\r\n\r\n\r\n--b--", .headTooLarge),
            ("--b\r\nA\(x(500))", .headTooLarge),
            ("--b\r\nA:1\r\nA:1\r\nA:1\r\n\r\n--b--", nil),
            ("--b\r\nA:1\r\nA:1\r\nA:1\r\nA:1\r\n\r\n--b--", .tooManyFields),
            ("--b\r\n\r\n--b\r\n\r\n--b--", nil), ("--b\r\n\r\n--b\r\n\r\n--b\r\n\r\n--b--", .tooManyParts),
        ] as [(String, WireViolation.Code?)] {
            let result = try readAllSplits(bytes(body), limits: Self.small, held: 40)
            #expect(result.violation == code && result.end == (code == nil ? nil : .illegalState), "\(body)")
        }
    }

    /// The reader holds back no more than a delimiter, however large a part is.
    @Test("No more than a delimiter is held back") func memory() throws {
        let boundary = try MultipartBoundary(contentType: "multipart/x-mixed-replace; boundary=bbbbbbbbbb")
        for unit in [
            "x", "\r", "\n", "\r\n", "\r\n--bbbbbbbbb", "\n--", "\r\n--bbbbbbbbbb" + String(repeating: " ", count: 200),
        ] {
            let body = bytes("--bbbbbbbbbb\r\n\r\n" + String(repeating: unit, count: 1000))
            let pieces = stride(from: 0, to: body.count, by: 3).map { body[$0..<min(body.count, $0 + 3)] }
            let result = run(MultipartReader(boundary: boundary), pieces, held: 10 + 2 + 2 + 128 + 3)
            #expect(result.violation == nil && result.parts.count == 1, "\(unit.debugDescription)")
            #expect((result.parts.first?.content.count ?? 0) + 160 >= body.count)
        }
    }

    @Test("A body without an end has limits") func endless() throws {
        var limits = MultipartLimits()
        limits.partCount = .max
        let boundary = try MultipartBoundary(contentType: "multipart/x-mixed-replace; boundary=b")
        let pieces = Array(repeating: bytes("--b\r\n\r\nx\r\n")[...], count: 3000)
        #expect(run(MultipartReader(boundary: boundary, limits: limits), pieces, held: 20).parts.count == 3000)
        #expect(run(MultipartReader(boundary: boundary), pieces, held: 20).violation == .tooManyParts)
    }

    /// Bodies made of significant pieces, cut at random.
    @Test("Any cut of a body yields the same parts") func anyCutGivesTheSame() throws {
        let fragments = [
            "\r", "\n", "\r\n", "-", "--", "b", "--b", "--b--", "\r\n--b\r\n", "\n--b\n", " ", "A: b", "x", "\r\n\r\n",
            "\0",
        ].map(bytes)
        var random = Numbers(state: 42)
        let boundary = try MultipartBoundary(contentType: "multipart/mixed; boundary=b")
        let dashed = try MultipartBoundary(contentType: "multipart/mixed; boundary=--b")
        for _ in 0..<3000 {
            var body: [UInt8] = []
            for _ in 0..<(random.next() % 24) { body += fragments[Int(random.next() % UInt64(fragments.count))] }
            for boundary in [boundary, dashed] {
                let reader = MultipartReader(boundary: boundary, limits: Self.small)
                let whole = run(reader, [body[...]], held: 10_000)
                var rest = body[...]
                var pieces: [ArraySlice<UInt8>] = []
                while !rest.isEmpty {
                    pieces.append(rest.prefix(Int(random.next() % 5) + 1))
                    rest = rest.dropFirst(pieces.last?.count ?? 1)
                }
                #expect(run(reader, pieces, held: 160) == whole, "\(body)")
            }
        }
    }
}

/// Random numbers that are equal in every run.
struct Numbers: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}
