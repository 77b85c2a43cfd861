// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Frames of a server, however they are cut: events, refusals, and the frames sent in return.
@Suite struct HTTP2CodecTests {
    /// A frame, its payload as it is.
    static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), kind, flags]
            + [24, 16, 8, 0].map { UInt8(stream >> $0 & 255) } + payload
    }

    /// A field that is not added to the table (RFC 7541 §6.2.2).
    static func field(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + name.utf8 + [UInt8(value.utf8.count)] + value.utf8
    }

    static let settings = frame(4, 0, 0)
    static let ok: [UInt8] = [0x88]
    static func headers(_ block: [UInt8], _ flags: UInt8 = 4, stream: UInt32 = 1) -> [UInt8] {
        frame(1, flags, stream, block)
    }
    static func data(_ text: String, end: Bool = false, stream: UInt32 = 1) -> [UInt8] {
        frame(0, end ? 1 : 0, stream, Array(text.utf8))
    }

    /// Feeds the bytes in pieces of this size; returns the events as lines, with the pieces of a body joined.
    struct Run {
        var lines: [String] = []
        var body = ""
        var output: [UInt8] = []

        init(
            _ wire: [UInt8], pieces: Int, limits: HTTP2Limits = HTTP2Limits(), requests: Int = 1, hasBody: Bool = false
        ) throws {
            let codec = try HTTP2Codec(limits: limits)
            for _ in 0..<requests {
                let request = HTTP2Request(
                    method: hasBody ? .post : .get, scheme: "https", authority: Array("example.org".utf8),
                    path: Array("/".utf8),
                    headers: ["A": "b"], framing: hasBody ? .chunked : .none)
                _ = try codec.submit(request, hasBody: hasBody)
            }
            codec.takeOutput(into: &output, upTo: .max)
            var buffer: [UInt8] = []
            var position = 0
            while position < wire.count {
                let end = min(position + pieces, wire.count)
                buffer += wire[position..<end]
                position = end
                let consumed = buffer.withUnsafeBytes { codec.receive($0) }
                for event in codec.takeEvents() { tell(event, buffer) }
                buffer.removeFirst(consumed)
                codec.takeOutput(into: &output, upTo: .max)
                for event in codec.takeEvents() { tell(event, buffer) }
            }
            if !body.isEmpty { lines.append("body \(body)") }
        }

        private mutating func tell(_ event: HTTP2Event, _ input: [UInt8]) {
            switch event {
            case .informational(let stream, let head): lines.append("\(stream) informational \(head.status.code)")
            case .response(let stream, let head):
                lines.append(
                    "\(stream) \(head.version) \(head.status.code) \(head.headers.map { "\($0.name): \($0.value)" })")
            case .data(_, let range): body += String(decoding: input[range], as: UTF8.self)
            case .end(let stream, let trailers):
                lines.append("\(stream) end \(trailers.map { "\($0.name): \($0.value)" })")
            case .reset(let stream, let code): lines.append("\(stream) reset \(code)")
            case .violation(let stream, let violation): lines.append("\(stream) violation \(violation.code.rawValue)")
            case .unprocessed(let stream): lines.append("\(stream) unprocessed")
            case .goAway(let code, _): lines.append("goaway \(code)")
            case .failed(let violation): lines.append("failed \(violation.code.rawValue)")
            case .sent(let stream, let count): lines.append("\(stream) sent \(count)")
            case .sentAll(let stream): lines.append("\(stream) sentAll")
            case .pong: lines.append("pong")
            case .concurrency, .settingsAcknowledged: break
            }
        }

        /// The code of the last sent frame of a kind, and its stream.
        func said(_ kind: UInt8) -> (stream: UInt8, code: UInt8)? {
            var index = 24
            var found: (UInt8, UInt8)?
            while index + 9 <= output.count {
                let length = Int(output[index]) << 16 | Int(output[index + 1]) << 8 | Int(output[index + 2])
                let payload = output[(index + 9)..<(index + 9 + length)]
                if output[index + 3] == kind {
                    found = (output[index + 8], kind == 7 ? payload[payload.startIndex + 7] : payload.last ?? 0)
                }
                index += 9 + length
            }
            return found
        }
    }

    static let good: [(wire: [UInt8], lines: [String])] = [
        (settings + headers(ok, 5), ["1 HTTP/2 200 []", "1 end []"]),
        (
            settings + headers(ok + field("content-type", "text/plain")) + data("hel") + data("lo", end: true),
            ["1 HTTP/2 200 [\"content-type: text/plain\"]", "1 end []", "body hello"]
        ),
        (
            settings + headers(field(":status", "103")) + headers(ok) + data("x") + headers(field("sum", "1"), 5),
            ["1 informational 103", "1 HTTP/2 200 []", "1 end [\"sum: 1\"]", "body x"]
        ),
        (
            settings + frame(1, 1, 1, ok) + frame(9, 0, 1, Array(field("a", "b").prefix(2)))
                + frame(9, 4, 1, Array(field("a", "b").dropFirst(2))),
            ["1 HTTP/2 200 [\"a: b\"]", "1 end []"]
        ),
        (
            settings + frame(0xEE, 0xFF, 1, [1, 2]) + frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]) + headers(ok, 5),
            ["1 HTTP/2 200 []", "1 end []"]
        ),
        (settings + frame(3, 0, 1, [0, 0, 0, 8]), ["1 reset CANCEL"]),
        (settings + frame(3, 0, 1, [0, 0, 0, 7]), ["1 unprocessed"]),
        (settings + frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]), ["goaway NO_ERROR", "1 unprocessed"]),
        // A request whose response has begun was processed.
        (settings + headers(ok) + frame(3, 0, 1, [0, 0, 0, 7]), ["1 HTTP/2 200 []", "1 reset REFUSED_STREAM"]),
        (
            settings + headers(field(":status", "103")) + frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
            ["1 informational 103", "goaway NO_ERROR", "1 reset REFUSED_STREAM"]
        ),
        (settings + headers(ok) + frame(0, 9, 1, [2, 0x61, 0, 0]), ["1 HTTP/2 200 []", "1 end []", "body a"]),
    ]

    @Test("The memory of a list of events serves a later one, whatever brings no event meanwhile")
    func eventMemory() throws {
        let codec = try HTTP2Codec()
        var output: [UInt8] = []
        codec.takeOutput(into: &output, upTo: .max)
        /// Returns how many events the list of a read has room for.
        func read(_ wire: [UInt8]) -> Int {
            _ = wire.withUnsafeBytes { codec.receive($0) }
            let events = codec.takeEvents()
            let capacity = events.capacity
            codec.giveBack(consume events)
            return capacity
        }
        let pong = Self.frame(6, 1, 0, [UInt8](repeating: 0, count: 8))
        _ = read(Self.settings)
        #expect(read(Array(repeatElement(pong, count: 20).joined())) >= 20)
        #expect(read([]) == 0)
        // Two lists take turns.
        #expect([read(pong), read(pong)].contains { $0 >= 20 })
    }

    @Test("What was tolerated of an interim response counts for the final one, once")
    func interimViolations() throws {
        let blank = Self.field("link", " </a>")
        for (final, count) in [(Self.ok, 1), (Self.ok + blank, 1)] {
            let codec = try HTTP2Codec(isTolerant: true)
            let request = HTTP2Request(
                method: .get, scheme: "https", authority: Array("example.org".utf8), path: Array("/".utf8),
                headers: [:],
                framing: .none)
            _ = try codec.submit(request, hasBody: false)
            var output: [UInt8] = []
            codec.takeOutput(into: &output, upTo: .max)
            let wire = Self.settings + Self.headers(Self.field(":status", "103") + blank) + Self.headers(final, 5)
            _ = wire.withUnsafeBytes { codec.receive($0) }
            let found = codec.takeEvents().compactMap { event -> Int? in
                if case .response(_, let head) = event { head.violations.all.count } else { nil }
            }
            #expect(found == [count])
        }
    }

    @Test("Valid frames yield the same events, however they are cut", arguments: good.indices)
    func cuts(_ index: Int) throws {
        let (wire, lines) = Self.good[index]
        for pieces in [wire.count, 1, 2, 3, 7, 10] {
            let run = try Run(wire, pieces: pieces)
            #expect(run.lines.sorted() == lines.sorted(), "in pieces of \(pieces)")
        }
        for cut in 1..<wire.count {
            let whole = try Run(wire, pieces: cut)
            #expect(whole.lines.sorted() == lines.sorted(), "cut at \(cut)")
        }
    }

    static let malformed: [[UInt8]] = [
        ok + field("Upper", "a"), ok + field("a", "b\nc"), ok + field("a", "b\rc"), ok + field("a", "b\0c"),
        ok + field("a b", "c"),
        ok + field("connection", "close"), ok + field("transfer-encoding", "chunked"), ok + field("keep-alive", "1"),
        ok + field("upgrade", "h2c"), ok + field("te", "gzip"), ok + ok, field("a", "b") + ok, ok + field(":path", "/"),
        ok + field(":status", "200"), field("a", "b"), field(":status", "20"), field(":status", "2000"),
        field(":status", "abc"),
        ok + field("content-length", "-1"), field(":status", "101"), ok + field("", "a"),
    ]

    @Test("A stream error leaves the connection usable (security 54)", arguments: malformed.indices)
    func refused(_ index: Int) throws {
        let wire = Self.settings + Self.headers(Self.malformed[index]) + Self.headers(Self.ok, 5, stream: 3)
        for pieces in [wire.count, 1] {
            let run = try Run(wire, pieces: pieces, requests: 2)
            #expect(
                run.lines == ["3 HTTP/2 200 []", "3 end []", "1 violation http2MalformedMessage"]
                    || run.lines == ["1 violation http2MalformedMessage", "3 HTTP/2 200 []", "3 end []"], "\(run.lines)"
            )
            #expect(run.said(3)?.code == 1 && run.said(3)?.stream == 1)
            #expect(run.said(7) == nil)
        }
    }

    @Test("Heads have limits (security 50)")
    func heads() throws {
        var limits = HTTP2Limits()
        limits.headSize = 500
        let field = Self.field("a", String(repeating: "b", count: 100))
        let large = Self.settings + Self.headers(Self.ok + field + field + field + field, 5)
        #expect(try Run(large, pieces: 1000, limits: limits).lines == ["1 violation headTooLarge"])
        limits = HTTP2Limits()
        limits.fieldCount = 3
        #expect(try Run(large, pieces: 1000, limits: limits).lines == ["1 violation tooManyFields"])

        let endless = Self.settings + Self.frame(1, 1, 1, Self.ok) + (0..<40).flatMap { _ in Self.frame(9, 0, 1) }
        let run = try Run(endless, pieces: 100)
        #expect(run.lines == ["failed http2Flood"] && run.said(7)?.code == 11)
        limits = HTTP2Limits()
        limits.informationalCount = 2
        let hints = Self.settings + (0..<3).flatMap { _ in Self.headers(Self.field(":status", "103")) }
        #expect(try Run(hints, pieces: 1000, limits: limits).lines.last == "1 violation tooManyInformational")
    }

    @Test(
        "A flood of useless frames ends the connection (security 51)",
        arguments: [
            frame(6, 0, 0, [UInt8](repeating: 0, count: 8)), frame(4, 0, 0), frame(0, 0, 1),
            frame(2, 0, 1, [0, 0, 0, 0, 1]),
            frame(8, 0, 0, [0, 0, 0, 1]), frame(0xEE, 0, 0), frame(6, 1, 0, [UInt8](repeating: 0, count: 8)),
            frame(0, 8, 1, [0]), frame(0, 8, 1, [3, 0, 0, 0]),
        ])
    func floods(_ frame: [UInt8]) throws {
        let wire = Self.settings + Self.headers(Self.ok) + (0..<1100).flatMap { _ in frame }
        let run = try Run(wire, pieces: wire.count)
        #expect(run.lines.last == "failed http2Flood" && run.said(7)?.code == 11, "\(run.lines)")
        // Useless frames are tolerated between useful bytes.
        let useful =
            Self.settings + Self.headers(Self.ok) + (0..<1100).flatMap { $0 % 100 == 0 ? Self.data("x") : frame }
        #expect(try Run(useful, pieces: 4096).lines.first { $0.hasPrefix("failed") } == nil)
    }

    @Test(
        "A flood of frames on a closed stream ends the connection (security 51)",
        arguments: [
            frame(0, 1, 1), frame(0, 0, 1, [7]), headers(ok, 5), headers(ok, 4), frame(8, 0, 1, [0, 0, 0, 1]),
            frame(2, 0, 1, [0, 0, 0, 0, 1]),
        ])
    func floodsAfterTheEnd(_ frame: [UInt8]) throws {
        let wire = Self.settings + Self.headers(Self.ok, 5) + (0..<1100).flatMap { _ in frame }
        let run = try Run(wire, pieces: wire.count, requests: 2)
        #expect(run.lines.last == "failed http2Flood" && run.said(7)?.code == 11, "\(run.lines)")
    }

    @Test(
        "Frames in flight when a stream was closed are tolerated, more are not (security 51)",
        arguments: [
            (16384, 16, 100), (100, 500, 1), (1, 1600, 1),
        ])
    func lateFrames(_ size: Int, _ count: Int, _ streams: Int) throws {
        let codec = try HTTP2Codec()
        let request = HTTP2Request(method: .get, scheme: "https", authority: Array("a".utf8), path: Array("/".utf8))
        let numbers = try (0..<streams).map { _ in try codec.submit(request, hasBody: false) }
        var output: [UInt8] = []
        codec.takeOutput(into: &output, upTo: .max)
        func receive(_ bytes: [UInt8]) -> Bool {
            _ = bytes.withUnsafeBytes { codec.receive($0) }
            codec.takeOutput(into: &output, upTo: .max)
            return codec.takeEvents().contains { if case .failed = $0 { true } else { false } }
        }
        #expect(!receive(Self.settings))
        for number in numbers { codec.reset(number, .cancel) }
        codec.takeOutput(into: &output, upTo: .max)
        let late = Self.frame(0, 0, 1, [UInt8](repeating: 7, count: size))
        var hasFailed = false
        for number in numbers {
            let head = Self.headers(Self.ok, stream: UInt32(number))
            hasFailed = receive(head) || hasFailed
            for _ in 0..<count { hasFailed = receive(late) || hasFailed }
        }
        #expect(hasFailed == (size == 1))
    }

    @Test(
        "Pushes, other protocols and frames that are too large are refused (security 53, 56)",
        arguments: [
            (settings + frame(5, 4, 1, [0, 0, 0, 2] + ok), "http2Violation", 1),
            (Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), "notHTTP2", 1),
            (headers(ok), "notHTTP2", 1), ([0, 0x40, 1, 0, 0, 0, 0, 0, 1], "notHTTP2", 1),
            (settings + [0, 0x40, 1, 0, 0, 0, 0, 0, 1], "http2Violation", 6),
            (settings + headers(ok, 4, stream: 5), "http2Violation", 1),
            (settings + data("x", stream: 0), "http2Violation", 1),
        ] as [([UInt8], String, UInt8)])
    func connectionErrors(_ wire: [UInt8], _ name: String, _ code: UInt8) throws {
        for pieces in [wire.count, 1] {
            let run = try Run(wire, pieces: pieces)
            #expect(run.lines == ["failed \(name)"], "\(run.lines)")
            #expect(run.said(7)?.code == code)
        }
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE, each value in an entry of its own.
    static func initialWindow(_ sizes: UInt32...) -> [UInt8] {
        frame(4, 0, 0, sizes.flatMap { size in [0, 4] + [24, 16, 8, 0].map { UInt8(size >> $0 & 255) } })
    }

    /// Widens the window of stream 1 from 65,535 bytes to the maximum.
    static let widest = frame(8, 0, 1, [0x7F, 0xFF, 0, 0])

    @Test(
        "SETTINGS that overflow a stream's window end the connection (RFC 9113 §6.9.2)",
        arguments: [
            widest + initialWindow(65_536), widest + initialWindow(65_536, 0), widest + initialWindow(0, 0x7FFF_FFFF),
            initialWindow(100) + frame(8, 0, 1, [0, 0, 0, 1]) + initialWindow(0x7FFF_FFFF), initialWindow(0x8000_0000),
        ])
    func windowOverflow(_ frames: [UInt8]) throws {
        let wire = Self.settings + frames + Self.headers(Self.ok, 5)
        for hasBody in [false, true] {
            let run = try Run(wire, pieces: wire.count, hasBody: hasBody)
            #expect(run.lines == ["failed http2FlowControl"])
            #expect(run.said(7)?.code == 3 && run.said(3) == nil)
        }
    }

    @Test("SETTINGS may set a window to its limit, and below zero (RFC 9113 §6.9.2)")
    func windowsWithinTheirLimits() throws {
        for frames in [
            Self.widest + Self.initialWindow(65_535), Self.widest + Self.initialWindow(0, 65_535),
            Self.initialWindow(0, 0x7FFF_FFFF),
        ] {
            let wire = Self.settings + frames + Self.headers(Self.ok, 5)
            #expect(try Run(wire, pieces: wire.count).lines == ["1 HTTP/2 200 []", "1 end []"])
        }
        let codec = try HTTP2Codec()
        let request = HTTP2Request(
            method: .post, scheme: "https", authority: Array("a".utf8), path: Array("/".utf8), framing: .chunked)
        let stream = try codec.submit(request, hasBody: true)
        var output: [UInt8] = []
        [UInt8](repeating: 7, count: 100_000).withUnsafeBytes { codec.send($0, on: stream) }
        codec.takeOutput(into: &output, upTo: .max)
        // The window is used up: 0 makes it -65,535, and the maximum keeps it below its limit.
        for frames in [Self.settings + Self.initialWindow(0), Self.initialWindow(0x7FFF_FFFF)] {
            _ = frames.withUnsafeBytes { codec.receive($0) }
            codec.takeOutput(into: &output, upTo: .max)
        }
        let hasFailed = codec.takeEvents().contains { if case .failed = $0 { true } else { false } }
        #expect(!hasFailed && codec.queued(on: stream) == 100_000 - 65_535)
    }

    @Test("Violations of flow control are reported for a stream and for the connection")
    func flowControl() throws {
        let large = Self.frame(0, 0, 1, [UInt8](repeating: 7, count: 16_384))
        for frames in [
            Self.widest + Self.frame(8, 0, 1, [0, 0, 0, 1]), Self.headers(Self.ok) + (0..<5).flatMap { _ in large },
        ] {
            let wire = Self.settings + frames
            let run = try Run(wire, pieces: wire.count)
            #expect(run.lines.contains("1 violation http2FlowControl"), "\(run.lines.prefix(3))")
            #expect(run.said(3)?.code == 3 && run.said(7) == nil)
        }
        let connection = Self.settings + Self.frame(8, 0, 0, [0x7F, 0xFF, 0xFF, 0xFF])
        let run = try Run(connection, pieces: connection.count)
        #expect(run.lines == ["failed http2FlowControl"] && run.said(7)?.code == 3)
    }

    @Test("A cookie with a control character is dropped from heads and trailers, and limits include it")
    func cookiesWithControls() throws {
        let odd = Self.field("set-cookie", "a=\u{1}")
        let good = Self.field("set-cookie", "b=2")
        let wire =
            Self.settings + Self.headers(Self.ok + odd + good + Self.field("set-cookie", "c=\u{7F}"))
            + Self.headers(odd + Self.field("x", "y"), 5)
        let run = try Run(wire, pieces: wire.count)
        #expect(run.lines == ["1 HTTP/2 200 [\"set-cookie: b=2\"]", "1 end [\"x: y\"]"])
        #expect(run.said(3) == nil)
        var limits = HTTP2Limits()
        limits.headSize = 500
        let many = Self.settings + Self.headers(Self.ok + (0..<20).flatMap { _ in odd })
        #expect(try Run(many, pieces: many.count, limits: limits).lines == ["1 violation headTooLarge"])
    }

    @Test(
        "A cookie with CR, LF or NUL, and any other field with a control character, is refused",
        arguments: [
            ok + field("set-cookie", "a=\r"), ok + field("set-cookie", "a=\u{1}\n"), ok + field("set-cookie", "a=\0"),
            ok + field("x", "a\u{1}"), ok + field("Set-Cookie", "a=1"), ok + field("set-cookie2", "a=\u{1}"),
        ])
    func fieldsWithControls(_ block: [UInt8]) throws {
        let wire = Self.settings + Self.headers(block, 5)
        #expect(try Run(wire, pieces: wire.count).lines == ["1 violation http2MalformedMessage"])
    }

    @Test("Request bodies respect flow control") func bodiesOfRequests() throws {
        let codec = try HTTP2Codec()
        let request = HTTP2Request(
            method: .post, scheme: "https", authority: Array("a".utf8), path: Array("/".utf8), framing: .chunked)
        let stream = try codec.submit(request, hasBody: true)
        var output: [UInt8] = []
        codec.takeOutput(into: &output, upTo: .max)
        let before = output.count
        codec.takeOutput(into: &output, upTo: .max)
        #expect(output.count == before)
        // The peer's window is 65,535 bytes.
        [UInt8](repeating: 7, count: 100_000).withUnsafeBytes { codec.send($0, on: stream) }
        codec.takeOutput(into: &output, upTo: .max)
        #expect(codec.queued(on: stream) == 100_000 - 65_535)
        try codec.endSending(on: stream, trailers: ["Sum": "1"])
        let update = Self.settings + Self.frame(8, 0, 0, [0, 1, 0, 0]) + Self.frame(8, 0, 1, [0, 1, 0, 0])
        _ = update.withUnsafeBytes { codec.receive($0) }
        codec.takeOutput(into: &output, upTo: .max)
        #expect(codec.queued(on: stream) == 0)
        let sent = codec.takeEvents().reduce(0) { if case .sent(_, let count) = $1 { $0 + count } else { $0 } }
        #expect(sent == 100_000)
        #expect(output.suffix(4 + 9).first != nil && output.count > 100_000)
    }

    @Test("Invalid requests are refused") func requestsThatCannotBe() throws {
        let codec = try HTTP2Codec()
        func submit(_ method: Method = .get, _ headers: Headers = [:], path: String = "/") throws -> Int32 {
            try codec.submit(
                HTTP2Request(
                    method: method, scheme: "https", authority: Array("a".utf8), path: Array(path.utf8),
                    headers: headers), hasBody: false)
        }
        #expect(throws: WireViolation.self) { try submit("A B") }
        #expect(throws: WireViolation.self) { try submit(.connect) }
        #expect(throws: WireViolation.self) { try submit(path: "/a b") }
        #expect(throws: WireViolation.self) { try submit(.get, ["a": "b\r\nc"]) }
        #expect(throws: WireViolation.self) { try submit(.get, ["host": "a", "Host": "b"]) }
        let number = try submit(.get, ["Connection": "x-a", "X-A": "1", "TE": "trailers", "Keep-Alive": "1"])
        #expect(number == 1)
    }

    @Test("Fields are sent in lower case, without connection-specific ones") func fieldsOnTheWire() throws {
        var list = HTTP2FieldList()
        try list.set(
            HTTP2Request(
                method: .post, scheme: "https", authority: Array("a:1".utf8), path: Array("/p?q".utf8),
                headers: [
                    "Host": "other", "Connection": "x-a", "X-A": "1", "TE": "trailers", "X-B": "2", "Upgrade": "h2c",
                ], framing: .length(5), urgency: 1))
        #expect(
            list.lines == [
                ":method=POST", ":scheme=https", ":authority=other", ":path=/p?q", "te=trailers", "x-b=2",
                "content-length=5", "priority=u=1",
            ])
    }

    @Test(
        "A Cookie field is split into crumbs (RFC 9113 §8.2.3)",
        arguments: [
            ("a=1; b=2;c; ; d", ["cookie=a=1", "cookie=b=2;c", "cookie=", "cookie=d"]), ("a=1", ["cookie=a=1"]),
            ("a;", ["cookie=a;"]),
        ])
    func crumbs(_ value: String, _ lines: [String]) throws {
        var list = HTTP2FieldList()
        try list.set(
            HTTP2Request(
                method: .get, scheme: "https", authority: Array("a".utf8), path: Array("/".utf8),
                headers: ["Cookie": value]))
        #expect(list.lines.filter { $0.hasPrefix("cookie") } == lines)
    }
}
