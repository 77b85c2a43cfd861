// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing

@testable import URLLoadingWire

/// The client's codec against the bytes that a server sends on its streams, without a transport.
@Suite struct HTTP3CodecTests {
    @Test("A request and its response")
    func exchange() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.receive(.headers([(":status", "200"), ("server", "x")]) + .data("hello"), isEnd: true)
        var head = Headers()
        head.append("server", "x")
        let expected: [HTTP3Event] = [
            .settings, .response(0, HTTP1ResponseHead(status: .ok, reason: "", version: .http3, headers: head)),
            .data(0, 0..<0), .end(0, trailers: Headers()),
        ]
        #expect(rig.events == expected)
        #expect(rig.body == "hello")
    }

    @Test("A response is the same however its bytes are cut")
    func oneByOne() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        for byte in [UInt8].headers([(":status", "204"), ("a", "b")]) { rig.receive([byte]) }
        rig.receive([], isEnd: true)
        #expect(rig.statuses == [204])
        #expect(rig.ends == [Headers()])
    }

    @Test("Interim responses, a body in two pieces and trailers arrive in their order")
    func order() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.receive(.headers([(":status", "103"), ("link", "</a>")]))
        rig.receive(.headers([(":status", "200")]) + .data("one") + .data("two"))
        rig.receive(.headers([("checksum", "9")]), isEnd: true)
        var trailers = Headers()
        trailers.append("checksum", "9")
        #expect(rig.statuses == [103, 200])
        #expect(rig.body == "onetwo")
        #expect(rig.ends == [trailers])
    }

    @Test(
        "A malformed message ends its stream and not the connection (RFC 9114 4.1.2)",
        arguments: [
            [UInt8].headers([("a", "b")]), .headers([(":status", "20")]),
            .headers([(":status", "200"), (":path", "/")]),
            .headers([(":status", "200"), (":status", "200")]), .headers([(":status", "200"), ("A", "b")]),
            .headers([(":status", "200"), ("connection", "close")]),
            .headers([(":status", "200"), ("content-length", "3")]) + .data("four"),
            .headers([("a", "b"), (":status", "200")]),
        ])
    func malformed(bytes: [UInt8]) throws {
        let rig = try HTTP3Rig()
        try rig.get()
        try rig.get(on: 4)
        rig.receive(bytes, isEnd: true)
        #expect(rig.violations.map(\.code) == [.http3MalformedMessage])
        rig.receive(.headers([(":status", "200")]), isEnd: true, on: 4)
        #expect(rig.statuses.last == 200)
        #expect(rig.failure == nil)
    }

    @Test("A response without a final head is malformed")
    func noHead() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.receive(.headers([(":status", "103")]), isEnd: true)
        #expect(rig.violations.count == 1)
        #expect(rig.ends.isEmpty)
    }

    @Test("A head beyond the limits ends its stream", arguments: [true, false])
    func heads(isLarge: Bool) throws {
        var limits = HTTP3Limits()
        (limits.headSize, limits.fieldCount) = (1_000, 5)
        let rig = try HTTP3Rig(limits)
        try rig.get()
        let fields = (0..<6).map { ("f\($0)", isLarge ? String(repeating: "x", count: 200) : "") }
        rig.receive(.headers([(":status", "200")] + fields))
        #expect(rig.violations.map(\.code) == [isLarge ? .headTooLarge : .tooManyFields])
        #expect(rig.orders.contains(.abort(0, .excessiveLoad)))
        #expect(rig.statuses.isEmpty)
    }

    @Test("Interim responses beyond the limit end their stream")
    func interim() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        for _ in 0..<17 { rig.receive(.headers([(":status", "102")])) }
        #expect(rig.statuses.count == 16)
        #expect(rig.violations.map(\.code) == [.tooManyInformational])
    }

    @Test(
        "A broken rule of the connection ends it",
        arguments: [
            // DATA before HEADERS, HEADERS with a broken prefix, a frame of HTTP/2, a frame of the control stream.
            [UInt8].data("x"), [1, 1, 0xFF], [2, 0], [4, 0],
        ])
    func connection(bytes: [UInt8]) throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.receive(bytes, isEnd: true)
        #expect(rig.failure != nil || !rig.violations.isEmpty)
        rig.receive(.headers([(":status", "200")]))
        #expect(rig.statuses.isEmpty)
    }

    @Test("A second control stream, an end of one and a missing SETTINGS frame end the connection", arguments: 0..<3)
    func control(which: Int) throws {
        let rig = try HTTP3Rig(HTTP3Limits(), settings: which == 2 ? [7, 1, 0] : [4, 0])
        switch which {
        case 0: rig.receive([0, 4, 0], on: 7)
        case 1: rig.codec.closed(3, nil)
        default: break
        }
        rig.take()
        #expect(rig.failure != nil)
    }

    @Test("GOAWAY gives back the requests that the peer will not process")
    func goAway() throws {
        let rig = try HTTP3Rig()
        for stream: Int64 in [0, 4, 8] { try rig.get(on: stream) }
        rig.receive([7, 1, 4], on: 3)
        #expect(rig.events.contains(.goAway(from: 4)))
        #expect(rig.events.filter { $0 == .unprocessed(4) || $0 == .unprocessed(8) }.count == 2)
        rig.receive(.headers([(":status", "200")]), isEnd: true, on: 0)
        #expect(rig.statuses == [200])
    }

    @Test("A stream that the peer resets is reported, with H3_REQUEST_REJECTED as unprocessed")
    func resets() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        try rig.get(on: 4)
        rig.codec.wasReset(0, HTTP3ErrorCode.internalError.rawValue)
        rig.codec.wasReset(4, HTTP3ErrorCode.requestRejected.rawValue)
        rig.take()
        #expect(rig.events.contains(.reset(0, .internalError)))
        #expect(rig.events.contains(.unprocessed(4)))
    }

    @Test("A request that is reset hears no more, and its bytes are consumed")
    func own() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.codec.reset(0, .requestCancelled)
        let bytes = [UInt8].headers([(":status", "200")]) + .data("late")
        #expect(rig.receive(bytes, isEnd: true) == bytes.count)
        #expect(rig.statuses.isEmpty)
        #expect(rig.orders == [.abort(0, .requestCancelled)])
    }

    @Test("Frames without effect are limited, and progress or time resets the count")
    func flood() throws {
        var limits = HTTP3Limits()
        limits.idleByteCount = 100
        // A reserved frame type (RFC 9114 §7.2.8), empty DATA, and a stream of an unknown type.
        for (bytes, stream) in [([UInt8]([0x21, 0]), Int64(3)), ([0, 0], 0), ([0x21, 1], 7)] {
            let rig = try HTTP3Rig(limits)
            try rig.get()
            rig.receive(.headers([(":status", "200")]))
            for round in 0..<20 { rig.receive(bytes, on: stream, second: Int64(round) * 10) }
            #expect(rig.failure == nil)
            for _ in 0..<20 {
                rig.receive(bytes, on: stream, second: 300)
                rig.receive(.data("x"), second: 300)
            }
            #expect(rig.failure == nil)
            for _ in 0..<60 { rig.receive(bytes, on: stream, second: 300) }
            #expect(rig.failure?.code == .http3Flood)
        }
    }

    @Test("A body is framed, held until it is acknowledged, and ended with trailers")
    func body() throws {
        let rig = try HTTP3Rig()
        try rig.codec.submit(rig.request("POST"), hasBody: true, on: 0)
        rig.send(0)
        #expect(rig.sent[0]?.isEnd == false)
        let bytes = [UInt8](repeating: 7, count: 40_000)
        bytes.withUnsafeBytes { rig.codec.send($0, on: 0) }
        #expect(rig.codec.queued(on: 0) == 40_000)
        rig.send(0)
        #expect(rig.codec.queued(on: 0) == 0)
        #expect(rig.codec.held(on: 0) == 40_000)
        var trailers = Headers()
        trailers.append("checksum", "9")
        try rig.codec.endSending(on: 0, trailers: trailers)
        rig.send(0)
        #expect(rig.sent[0]?.isEnd == true)
        #expect(rig.sent[0]?.bytes.filter { $0 == 7 }.count ?? 0 >= 40_000)
        rig.codec.acknowledged(rig.sent[0]?.bytes.count ?? 0, on: 0)
        #expect(rig.codec.held(on: 0) == 0)
        rig.take()
        #expect(rig.events.contains(.sentAll(0)))
    }

    @Test("The bytes of a body survive the end of the response until their stream is closed")
    func retained() throws {
        let rig = try HTTP3Rig()
        try rig.codec.submit(rig.request("POST"), hasBody: true, on: 0)
        [UInt8](repeating: 7, count: 10_000).withUnsafeBytes { rig.codec.send($0, on: 0) }
        try rig.codec.endSending(on: 0)
        rig.send(0)
        rig.receive(.headers([(":status", "200")]), isEnd: true)
        rig.codec.reset(0, .noError)
        rig.codec.acknowledged(5_000, on: 0)
        rig.codec.closed(0, nil)
        rig.take()
        #expect(rig.events.contains { if case .end = $0 { true } else { false } })
        #expect(!rig.events.contains { if case .reset = $0 { true } else { false } })
        #expect(rig.failure == nil)
    }

    @Test("A stream that closes before its response is complete is reported as reset")
    func closedEarly() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        rig.receive(.headers([(":status", "200")]))
        rig.codec.closed(0, 0x102)
        rig.take()
        #expect(rig.events.last == .reset(0, .internalError))
    }

    @Test("A response that waits for the table of compression survives the end of its stream")
    func lateTable() throws {
        let rig = try HTTP3Rig()
        try rig.get()
        // Type, capacity 4,096 and one entry: the stream of the table; a section that refers to its first entry.
        let table: [UInt8] = [2, 0x3F, 0xE1, 0x1F, 0x41, 0x61, 1, 0x62]
        let section: [UInt8] = [2, 0, 0xD9, 0x80]
        rig.receive([1, UInt8(section.count)] + section + .data("hello"), isEnd: true)
        rig.codec.closed(0, nil)
        rig.take()
        #expect(rig.statuses.isEmpty && rig.codec.requestCount == 1)
        rig.receive(table, on: 7)
        #expect(rig.statuses == [200])
        #expect(rig.late == "hello")
        #expect(rig.ends == [Headers()])
        #expect(!rig.events.contains { if case .reset = $0 { true } else { false } })
        #expect(rig.codec.requestCount == 0)
    }

    @Test("A stream whose response has begun was processed, whatever the peer says", arguments: [true, false])
    func begun(isFinal: Bool) throws {
        let rig = try HTTP3Rig()
        for stream: Int64 in [0, 4, 8] {
            try rig.get(on: stream)
            rig.receive(.headers([(":status", isFinal ? "200" : "103")]), on: stream)
        }
        rig.codec.wasReset(8, HTTP3ErrorCode.requestRejected.rawValue)
        rig.receive([7, 1, 4], on: 3)
        #expect(rig.events.contains(.reset(4, .requestRejected)))
        #expect(rig.events.contains(.reset(8, .requestRejected)))
        #expect(!rig.events.contains(.reset(0, .requestRejected)))
        #expect(!rig.events.contains { if case .unprocessed = $0 { true } else { false } })
    }

    @Test("A reset behind a complete response, and GOAWAY, do not end the request's body", arguments: [true, false])
    func endedBody(isReset: Bool) throws {
        let rig = try HTTP3Rig()
        try rig.codec.submit(rig.request("POST"), hasBody: true, on: 0)
        rig.send(0)
        rig.receive(.headers([(":status", "200")]), isEnd: true)
        if isReset { rig.codec.wasReset(0, HTTP3ErrorCode.noError.rawValue) } else { rig.receive([7, 1, 0], on: 3) }
        [UInt8](repeating: 7, count: 3).withUnsafeBytes { rig.codec.send($0, on: 0) }
        rig.send(0)
        #expect(rig.sent[0]?.isEnd == false)
        #expect(rig.sent[0]?.bytes.suffix(3) == [7, 7, 7])
        try rig.codec.endSending(on: 0)
        rig.send(0)
        #expect(rig.sent[0]?.isEnd == true)
    }

    @Test("A body that is given up keeps only the pieces of which bytes were lent")
    func discarded() {
        let queue = HTTP3SendQueue()
        for _ in 0..<3 { [UInt8](repeating: 7, count: 1_000).withUnsafeBytes { queue.append($0) } }
        #expect(queue.lend(1_500)?.count == 1_000)
        #expect(queue.lend(500)?.count == 500)
        queue.discard()
        #expect(queue.queued == 0 && queue.held == 2_000)
        #expect(queue.lend(500) == nil)
        queue.release(1_500)
        #expect(queue.held == 500)
    }

    @Test("A body without more bytes does not hold back another one")
    func drained() throws {
        let rig = try HTTP3Rig()
        for stream: Int64 in [0, 4] { try rig.codec.submit(rig.request("POST"), hasBody: true, on: stream) }
        rig.send(0)
        for stream: Int64 in [0, 4] { [UInt8(7)].withUnsafeBytes { rig.codec.send($0, on: stream) } }
        rig.send(0)
        #expect(rig.codec.queued(on: 0) == 0)
        #expect(rig.codec.queued(on: 4) == 0)
    }

    @Test("Heads within the limits that arrive in alternating pieces are not taken for a flood")
    func largeHeads() throws {
        let rig = try HTTP3Rig()
        let streams: [Int64] = [0, 4, 8]
        for stream in streams { try rig.get(on: stream) }
        let head = [UInt8].headers([(":status", "200"), ("x", String(repeating: "y", count: 60_000))])
        for start in stride(from: 0, to: head.count, by: 1_000) {
            for stream in streams { rig.receive(Array(head[start..<min(start + 1_000, head.count)]), on: stream) }
        }
        #expect(rig.failure == nil)
        #expect(rig.statuses == [200, 200, 200])
    }

    @Test("A clock that steps back changes nothing")
    func clock() throws {
        let rig = try HTTP3Rig()
        for number in 0..<10 {
            rig.receive([0x21], isEnd: true, on: Int64(7 + 4 * number), second: Int64(100 - number))
        }
        rig.receive([0x21], isEnd: true, on: 63, second: -5)
        #expect(rig.failure == nil)
    }

    @Test("A request whose fields are larger than the peer takes is not sent (RFC 9114 4.2.2)")
    func peerHeadSize() throws {
        let rig = try HTTP3Rig(HTTP3Limits(), settings: [4, 3, 6, 0x40, 100])
        #expect(throws: WireViolation.self) { try rig.get() }
    }

    @Test("Random bytes end the connection or a stream, and never trap", arguments: 0..<200)
    func random(seed: UInt64) throws {
        var generator = SplitMix(state: seed)
        let rig = try HTTP3Rig()
        try rig.get()
        let good = [UInt8].headers([(":status", "200"), ("a", "b")]) + .data("hello") + .headers([("t", "u")])
        var bytes = good
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let index = Int.random(in: bytes.indices, using: &generator)
            bytes[index] = UInt8.random(in: .min ... .max, using: &generator)
        }
        for stream: Int64 in [0, 3, 7, 11] {
            rig.receive(Array(bytes.prefix(.random(in: 0...bytes.count, using: &generator))), isEnd: false, on: stream)
        }
        rig.receive([], isEnd: true)
    }
}

/// A codec whose streams are open, and what it says.
final class HTTP3Rig {
    let codec: HTTP3Codec
    private(set) var events: [HTTP3Event] = []
    private(set) var orders: [HTTP3StreamOrder] = []
    private(set) var body = ""
    private(set) var late = ""
    private(set) var sent: [Int64: (bytes: [UInt8], isEnd: Bool)] = [:]

    init(_ limits: HTTP3Limits = HTTP3Limits(), settings: [UInt8] = [4, 0]) throws {
        codec = try HTTP3Codec(limits: limits)
        try codec.bind(control: 2, encoder: 6, decoder: 10)
        receive([0] + settings, on: 3)
    }

    func request(_ method: String = "GET") throws -> HTTP2Request {
        HTTP2Request(
            method: Method(method), scheme: "https", authority: Array("example.org".utf8), path: Array("/".utf8),
            framing: method == "GET" ? .none : .chunked)
    }

    func get(on stream: Int64 = 0) throws {
        try codec.submit(request(), hasBody: false, on: stream)
        send(stream)
    }

    @discardableResult
    func receive(_ bytes: [UInt8], isEnd: Bool = false, on stream: Int64 = 0, second: Int64 = 0) -> Int {
        let consumed = bytes.withUnsafeBytes { codec.receive($0, isEnd: isEnd, on: stream, second: second) }
        for event in take() {
            if case .data(_, let range) = event { body += String(decoding: bytes[range], as: UTF8.self) }
            if case .lateData(_, let bytes) = event { late += String(decoding: bytes, as: UTF8.self) }
        }
        return consumed
    }

    @discardableResult
    func take() -> [HTTP3Event] {
        let new = codec.takeEvents()
        events += new.map(\.withoutRange)
        orders += codec.takeOrders()
        return new
    }

    /// Takes all bytes that the codec sends.
    func send(_ stream: Int64) {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 16) { pieces in
            while let output = codec.nextOutput(pieces) {
                var all = sent[output.stream] ?? ([], false)
                var count = 0
                for piece in pieces[..<output.pieces] {
                    all.bytes += piece
                    count += piece.count
                }
                all.isEnd = output.isEnd
                sent[output.stream] = all
                codec.took(count, on: output.stream)
            }
        }
    }

    var statuses: [Int] {
        events.compactMap {
            switch $0 {
            case .informational(_, let head), .response(_, let head): head.status.code
            default: nil
            }
        }
    }
    var ends: [Headers] { events.compactMap { if case .end(_, let trailers) = $0 { trailers } else { nil } } }
    var violations: [WireViolation] { events.compactMap { if case .violation(_, let all) = $0 { all } else { nil } } }
    var failure: WireViolation? {
        for case .failed(let violation, _) in events { return violation }
        return nil
    }
}

extension HTTP3Event {
    /// The event without the place of a body.
    var withoutRange: HTTP3Event { if case .data(let stream, _) = self { .data(stream, 0..<0) } else { self } }
}

extension [UInt8] {
    /// A HEADERS frame whose fields are literal (RFC 9204 §4.5.6).
    static func headers(_ fields: [(String, String)]) -> [UInt8] {
        var section: [UInt8] = [0, 0]
        for (name, value) in fields {
            section += prefixed(name.utf8.count, bits: 3, mark: 0x20) + name.utf8
            section += prefixed(value.utf8.count, bits: 7, mark: 0) + value.utf8
        }
        return [1] + variable(section.count) + section
    }

    static func data(_ text: String) -> [UInt8] { [0] + variable(text.utf8.count) + text.utf8 }

    /// An integer with a prefix (RFC 7541 §5.1).
    private static func prefixed(_ value: Int, bits: Int, mark: UInt8) -> [UInt8] {
        let most = 1 << bits - 1
        guard value >= most else { return [mark | UInt8(value)] }
        var (rest, all) = (value - most, [mark | UInt8(most)])
        while rest >= 128 {
            all.append(UInt8(rest % 128) | 0x80)
            rest /= 128
        }
        return all + [UInt8(rest)]
    }

    /// An integer of variable length (RFC 9000 §16).
    private static func variable(_ value: Int) -> [UInt8] {
        switch value {
        case ..<64: [UInt8(value)]
        case ..<16_384: [0x40 | UInt8(value >> 8), UInt8(value & 0xFF)]
        default: [0x80, UInt8(value >> 16), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
        }
    }
}

#endif
