// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

/// RFC 9113 4 and 6.
@Suite(.timeLimit(.minutes(4)))
struct HTTP2FrameTests {
    static let frames: [HTTP2Frame] = [
        .data(stream: 1, [1, 2, 3], endStream: true), .data(stream: 1, [], padding: 3),
        .headers(stream: 3, [0x82], endStream: true, padding: 2), .headers(stream: 3, [0x82], endHeaders: false),
        .continuation(stream: 3, [0x84]), .priority(stream: 5, dependsOn: 3, weight: 200, isExclusive: true),
        .resetStream(7, .refusedStream), .settings(.initialWindowSize(1), .init(0xFFFF, .max)), .settings(),
        .settingsAck,
        .pushPromise(stream: 1, promised: 2, [0x82]), .ping([1, 2, 3, 4, 5, 6, 7, 8], ack: true),
        .goAway(last: 0x7FFF_FFFF, .enhanceYourCalm, debug: [0x68]), .windowUpdate(1),
        .windowUpdate(stream: 0x7FFF_FFFF, 0x7FFF_FFFF),
        HTTP2Frame(
            .init(rawValue: 0xFA), flags: .init(rawValue: 0xFF), stream: 9,
            payload: [UInt8](repeating: 7, count: 20_000)),
    ]

    @Test("written frames are read whole, byte by byte and split everywhere", arguments: frames)
    func reading(_ frame: HTTP2Frame) {
        let bytes = frame.bytes
        var whole = HTTP2FrameReader()
        whole.receive(bytes + bytes + [0])
        #expect(whole.next() == frame && whole.next() == frame && whole.next() == nil)
        #expect(Array(whole.unread) == [0])

        for split in Set([0, 1, 3, 8, 9, 10, bytes.count - 1]) where split < bytes.count {
            var reader = HTTP2FrameReader()
            reader.receive(bytes[..<split])
            #expect(reader.next() == nil)
            reader.receive(bytes[split...])
            #expect(reader.next() == frame)
        }

        var single = HTTP2FrameReader()
        for byte in bytes.dropLast() {
            single.receive([byte])
            #expect(single.next() == nil)
        }
        single.receive([bytes[bytes.count - 1]])
        #expect(single.next() == frame && single.next() == nil && single.unread.isEmpty)
    }

    @Test("many frames through one reader")
    func many() {
        var reader = HTTP2FrameReader()
        for round in 0..<50 {
            for frame in Self.frames { reader.receive(frame.bytes) }
            let read = Self.frames.map { _ in reader.next() }
            #expect(read == Self.frames, "round \(round)")
        }
        #expect(reader.unread.isEmpty)
    }

    @Test("the bytes are those of the RFC")
    func bytes() {
        #expect(HTTP2Frame.settingsAck.bytes == [0, 0, 0, 4, 1, 0, 0, 0, 0])
        #expect(HTTP2Frame.settings(.maxConcurrentStreams(258)).bytes == [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 1, 2])
        #expect(
            HTTP2Frame.data(stream: 0x0102_0304, [9], endStream: true, padding: 2).bytes == [
                0, 0, 4, 0, 9, 1, 2, 3, 4, 2, 9, 0, 0,
            ])
        #expect(
            HTTP2Frame.priority(stream: 1, dependsOn: 3, weight: 7, isExclusive: true).payload == [0x80, 0, 0, 3, 7])
        #expect(HTTP2Frame.goAway(last: 5, .cancel, debug: [1]).payload == [0, 0, 0, 5, 0, 0, 0, 8, 1])
        var wrong = HTTP2Frame.data(stream: 1, [1])
        wrong.declaredLength = 0x01_0203
        wrong.reservedBit = true
        #expect(wrong.bytes == [1, 2, 3, 0, 0, 0x80, 0, 0, 1, 1])
    }

    @Test("a payload taken apart")
    func taking() {
        #expect(HTTP2Frame.data(stream: 1, [1, 2], padding: 4).content == [1, 2])
        #expect(HTTP2Frame(.data, flags: .padded, stream: 1, payload: [2, 1]).content == nil)
        #expect(HTTP2Frame(.data, flags: .padded, stream: 1).content == nil)
        let head = HTTP2Frame(.headers, flags: [.padded, .priority], stream: 1, payload: [1, 0, 0, 0, 0, 9, 0x82, 0])
        #expect(head.content == [0x82])
        #expect(HTTP2Frame.pushPromise(stream: 1, promised: 2, [7]).content == [7])
        #expect(HTTP2Frame.pushPromise(stream: 1, promised: 2, [7]).promisedStream == 2)
        #expect(HTTP2Frame.settings(.maxFrameSize(1 << 20)).settings == [.maxFrameSize(1 << 20)])
        #expect(HTTP2Frame(.settings, payload: [0]).settings == nil)
        #expect(HTTP2Frame.goAway(last: 9, .noError).lastStream == 9)
        #expect(HTTP2Frame.goAway(last: 9, .http11Required).errorCode == .http11Required)
        #expect(HTTP2Frame(.goAway, payload: [1]).errorCode == nil)
        #expect(HTTP2Frame.windowUpdate(77).increment == 77 && HTTP2Frame.ping().increment == nil)
        #expect(!HTTP2Frame.settingsAck.endsStream && HTTP2Frame.settingsAck.isAck)
    }

    @Test("a section in as many frames as wanted", arguments: 1...7)
    func sections(_ count: Int) {
        let block: [UInt8] = [1, 2, 3, 4, 5]
        let frames = HTTP2Frame.section(stream: 1, block, endStream: true, splitInto: count)
        #expect(frames.count == count && frames.flatMap(\.payload) == block)
        #expect(frames.map { $0.flags.contains(.endHeaders) } == (1...count).map { $0 == count })
        #expect(frames.map(\.endsStream) == (1...count).map { $0 == 1 })
    }

    @Test("frames draw themselves")
    func descriptions() {
        #expect(
            "\(HTTP2Frame.headers(stream: 1, [1, 2], endStream: true))"
                == "HEADERS stream 1, 2 bytes, endStream endHeaders")
        #expect(
            "\(HTTP2Frame.goAway(last: 3, .enhanceYourCalm))" == "GOAWAY stream 0, 8 bytes, last 3, ENHANCE_YOUR_CALM")
        #expect("\(HTTP2Frame(.init(rawValue: 0xFA)))" == "kind 250 stream 0, 0 bytes")
    }
}
