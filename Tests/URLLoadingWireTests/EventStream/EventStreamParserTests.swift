// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// WHATWG HTML 9.2.5 and 9.2.6.
@Suite struct EventStreamParserTests {
    struct Run: Equatable {
        var items: [EventStreamItem] = []
        var lastEventID = ""
        var violation: WireViolation.Code?
    }

    static func run(_ pieces: some Sequence<ArraySlice<UInt8>>, _ limits: EventStreamLimits) -> Run {
        var parser = EventStreamParser(limits: limits)
        var run = Run()
        do throws(WireViolation) {
            for piece in pieces {
                var rest = Array(piece)
                while true {
                    var consumed = 0
                    let item = try rest.withUnsafeBufferPointer { (input) throws(WireViolation) in
                        try parser.next(UnsafeRawBufferPointer(input), consumed: &consumed)
                    }
                    rest.removeFirst(consumed)
                    guard let item else { break }
                    run.items.append(item)
                }
                #expect(rest.isEmpty)
            }
        } catch {
            run.violation = error.code
            var consumed = 0
            #expect(
                violation { _ = try [UInt8]().withUnsafeBytes { try parser.next($0, consumed: &consumed) } }
                    == .illegalState)
        }
        run.lastEventID = parser.lastEventID
        return run
    }

    @discardableResult
    static func runAllSplits(
        _ stream: [UInt8], limits: EventStreamLimits = .init(), sourceLocation: SourceLocation = #_sourceLocation
    ) -> Run {
        let whole = run([stream[...]], limits)
        #expect(
            run(stream.indices.map { stream[$0...$0] }, limits) == whole, "byte by byte", sourceLocation: sourceLocation
        )
        for cut in Swift.stride(from: 0, through: stream.count, by: max(1, stream.count / 300)) {
            let next = min(stream.count, cut + 1 + cut % 4)
            let pieces = [stream[..<cut], stream[cut..<next], [], stream[next...]]
            #expect(run(pieces, limits) == whole, "cut at \(cut) and \(next)", sourceLocation: sourceLocation)
        }
        return whole
    }

    func events(_ text: String) -> [ServerSentEvent] {
        var results: [[ServerSentEvent]] = []
        for lineBreak in ["\n", "\r\n", "\r"] {
            let stream = text.unicodeScalars.map { $0 == "\n" ? lineBreak : String($0) }.joined()
            let items = Self.runAllSplits(bytes(stream)).items
            results.append(items.compactMap { if case .event(let event) = $0 { event } else { nil } })
        }
        #expect(results[0] == results[1] && results[1] == results[2], "lines end in three ways")
        return results[0]
    }

    @Test("The examples of the specification are parsed") func theExamplesOfTheSpecification() {
        #expect(events("data: YHOO\ndata: +2\ndata: 10\n\n") == [ServerSentEvent(data: "YHOO\n+2\n10")])
        #expect(
            events(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n") == [
                ServerSentEvent(data: "first event", lastEventID: "1"), ServerSentEvent(data: "second event"),
                ServerSentEvent(data: " third event"),
            ])
        #expect(events("data\n\ndata\ndata\n\ndata:") == [ServerSentEvent(data: ""), ServerSentEvent(data: "\n")])
        #expect(
            events("data:test\n\ndata: test\n\n") == [ServerSentEvent(data: "test"), ServerSentEvent(data: "test")])
        #expect(
            events("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n") == [
                ServerSentEvent(type: "add", data: "73857293"), ServerSentEvent(type: "remove", data: "2153"),
            ])
    }

    @Test("Fields are parsed") func fields() {
        #expect(
            events("Data: a\nDATA: a\n data: a\ndata : a\ndatax: a\ndat: a\n\n").isEmpty,
            "names have their case, and no blanks")
        #expect(events("data:\t a\n\n") == [ServerSentEvent(data: "\t a")])
        #expect(events("data:a:b\n\n") == [ServerSentEvent(data: "a:b")])
        #expect(events("event: a\nevent: b\ndata\n\n") == [ServerSentEvent(type: "b", data: "")])
        #expect(events("event: a\nevent\ndata: x\n\n") == [ServerSentEvent(data: "x")], "an empty type is none")
        #expect(events("event: a\n\ndata: x\n\n") == [ServerSentEvent(data: "x")], "a type without data is gone")
        #expect(events(":data: a\n:\n::\n\n\n\n").isEmpty)
        #expect(events("data: \0\u{1b}\u{20ac}\n\n") == [ServerSentEvent(data: "\0\u{1b}\u{20ac}")])
    }

    @Test("Event ids are kept until the next one") func ids() {
        #expect(
            events("id: 1\ndata\n\ndata\n\nid: 2\0\ndata\n\nid: \u{e4}\ndata\n\nid:\ndata\n\n").map(\.lastEventID) == [
                "1", "1", "1", "\u{e4}", "",
            ])
        #expect(Self.runAllSplits(bytes("id: 7\n\n")) == Self.Run(lastEventID: "7"), "it counts without data as well")
        #expect(Self.runAllSplits(bytes("id: 7\n\nid: 8\ndata: x\n")).lastEventID == "7", "of a half event it does not")
        var parser = EventStreamParser(lastEventID: "5")
        var consumed = 0
        #expect(
            bytes("data: a\n\n").withUnsafeBytes { try? parser.next($0, consumed: &consumed) }
                == .event(.init(data: "a", lastEventID: "5")))
    }

    @Test("Only digits are a retry time") func retry() {
        func retries(_ text: String) -> [EventStreamItem] { Self.runAllSplits(bytes(text)).items }
        #expect(
            retries("retry: 3000\nretry:0\n") == [.retry(milliseconds: 3000), .retry(milliseconds: 0)],
            "without waiting for an event")
        #expect(retries("retry: 1\ndata: x\n\n") == [.retry(milliseconds: 1), .event(.init(data: "x"))])
        for bad in ["", "-1", "+1", "1.5", "1 ", " 1", "1s", "99999999999999999999", "\u{ff11}", "0x1"] {
            #expect(retries("retry: \(bad)\n\n").isEmpty, "\(bad)")
        }
    }

    @Test("CR, LF and CR LF end a line") func lineEnds() {
        let mixed = "data: a\rdata: b\r\ndata: c\n\r\n\rdata: d\r\rdata: e\n\rdata: f\r\n\n"
        #expect(Self.runAllSplits(bytes(mixed)).items == ["a\nb\nc", "d", "e", "f"].map { .event(.init(data: $0)) })
        #expect(Self.run([bytes("data: a\r\r")[...]], .init()).items.count == 1, "dispatched without waiting for an LF")
        #expect(Self.runAllSplits(bytes("data: a\r\n\r")).items.count == 1)
    }

    @Test("A byte order mark at the beginning is skipped") func byteOrderMark() {
        #expect(events("\u{feff}data: a\n\n") == [ServerSentEvent(data: "a")])
        #expect(events("\u{feff}\u{feff}data: a\n\n").isEmpty, "one")
        #expect(
            events("\u{feff}\n\u{feff}data: a\n\ndata: b\n\n") == [ServerSentEvent(data: "b")], "and only at the start")
        #expect(Self.runAllSplits([0xEF, 0xBB] + bytes("data: a\n\n")).items.isEmpty)
    }

    @Test("Invalid UTF-8 is replaced") func invalidUTF8IsReplaced() {
        let stream = bytes("data: a") + [0xFF, 0xC3] + bytes("b\n\n")
        #expect(Self.runAllSplits(stream).items == [.event(.init(data: "a\u{fffd}\u{fffd}b"))])
    }

    @Test("An incomplete event is discarded") func anIncompleteEventIsDiscarded() {
        let stream = bytes("data: a\n\nevent: x\ndata: b\n\n")
        for count in 0..<stream.count {
            let items = Self.run([stream[..<count]], .init()).items
            #expect(items == (count >= 9 ? [.event(.init(data: "a"))] : []), "\(count)")
        }
        #expect(Self.runAllSplits(stream).items.count == 2)
    }

    @Test("Lines and events have limits") func limits() {
        var limits = EventStreamLimits()
        limits.lineSize = 20
        limits.eventSize = 30
        func x(_ count: Int) -> String { String(repeating: "x", count: count) }
        for (text, code) in [
            ("data:\(x(15))\n\n", nil), ("data:\(x(16))\n\n", .eventLineTooLong), (x(21), .eventLineTooLong),
            (":\(x(20))", .eventLineTooLong),
            (x(20), nil), ("data:\(x(14))\ndata:\(x(15))\n\n", nil),
            ("data:\(x(15))\ndata:\(x(15))\n\n", .eventTooLarge),
            ("data:\(x(15))\nevent:\(x(14))\n", nil), ("data:\(x(15))\ndata\nevent:\(x(14))\ndata:\n", .eventTooLarge),
            (String(repeating: "data\n", count: 31), nil), (String(repeating: "data\n", count: 32), .eventTooLarge),
            (String(repeating: "data:\(x(10))\n\n", count: 20), nil),
            (String(repeating: ":\(x(10))\nid:1\n", count: 20), nil),
        ] as [(String, WireViolation.Code?)] {
            #expect(Self.runAllSplits(bytes(text), limits: limits).violation == code, "\(text)")
        }
    }

    /// Streams made of significant pieces, cut at random.
    @Test("Any cut of a stream yields the same events") func anyCutGivesTheSame() {
        let fragments = [
            "\r", "\n", "\r\n", "data", ":", " ", "id", "event: e", "retry:1", "x", "\0", "\u{feff}", "data: y\n\n",
        ].map(bytes)
        var random = Numbers(state: 3)
        var limits = EventStreamLimits()
        limits.lineSize = 24
        limits.eventSize = 16
        for _ in 0..<3000 {
            var stream: [UInt8] = []
            for _ in 0..<(random.next() % 24) { stream += fragments[Int(random.next() % UInt64(fragments.count))] }
            let whole = Self.run([stream[...]], limits)
            var pieces: [ArraySlice<UInt8>] = []
            var rest = stream[...]
            while !rest.isEmpty {
                pieces.append(rest.prefix(Int(random.next() % 5) + 1))
                rest = rest.dropFirst(pieces.last?.count ?? 1)
            }
            #expect(Self.run(pieces, limits) == whole, "\(stream)")
        }
    }
}
