// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 6455 §5 to §8, as a receiver. Security 67 and 68 where frames are concerned.
@Suite struct WebSocketCodecTests {
    typealias Run = WebSocketTranscript

    @Test("The examples of the specification are read (§5.7)")
    func examples() {
        #expect(
            Run.runAllSplits([0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]).items == [.message(.text, Array("Hello".utf8))]
        )
        let masked: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(Run.runAllSplits(masked, role: .server).items == [.message(.text, Array("Hello".utf8))])
        let fragments: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]
        #expect(Run.runAllSplits(fragments).items == [.message(.text, Array("Hello".utf8))])
        #expect(Run.runAllSplits([0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]).items == [.ping(Array("Hello".utf8))])
        #expect(
            Run.runAllSplits(frame(2, Array(repeating: 7, count: 256))).items == [
                .message(.binary, Array(repeating: 7, count: 256))
            ])
        #expect(
            Run.run([frame(2, Array(repeating: 7, count: 65_536))]).items == [
                .message(.binary, Array(repeating: 7, count: 65_536))
            ])
    }

    @Test("Lengths at the limits of the three forms are read (§5.2)", arguments: [0, 1, 125, 126, 127, 65_535, 65_536])
    func lengths(count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        #expect(Run.runAllSplits(frame(2, payload)).items == [.message(.binary, payload)])
        #expect(
            Run.runAllSplits(frame(2, payload, mask: [1, 2, 3, 4]), role: .server).items == [.message(.binary, payload)]
        )
    }

    @Test("Control frames between fragments, empty fragments and empty messages are read (§5.4)")
    func fragments() {
        let stream =
            frame(1, "Hel", isFinal: false) + frame(9, "x") + frame(0, "", isFinal: false) + frame(10, "y")
            + frame(0, "lo")
        #expect(Run.runAllSplits(stream).items == [.ping([0x78]), .pong([0x79]), .message(.text, Array("Hello".utf8))])
        #expect(Run.runAllSplits(frame(1) + frame(2)).items == [.message(.text, []), .message(.binary, [])])
    }

    @Test(
        "Frames that no endpoint may send are refused (§5)",
        arguments: [
            ("RSV1 without an extension", frame(1, [65], reserved: 4)), ("RSV2", frame(1, [65], reserved: 2)),
            ("RSV3", frame(1, [65], reserved: 1)), ("opcode 3", frame(3, [65])), ("opcode 7", frame(7)),
            ("opcode 11", frame(11)), ("opcode 15", frame(15)),
            ("a server that masks (§5.1)", frame(1, [65], mask: [0, 0, 0, 0])),
            ("a fragmented ping (§5.5)", frame(9, [65], isFinal: false)),
            ("a fragmented close", frame(8, isFinal: false)),
            ("a ping of 126 bytes", frame(9, Array(repeating: 65, count: 126))),
            ("a compressed ping", frame(9, [65], reserved: 4)),
            ("a continuation of nothing (§5.4)", frame(0, [65])),
            ("a new message inside a message", frame(1, [65], isFinal: false) + frame(1, [66])),
            ("5 bytes in the form of 16 bits", frame(2, [1, 2, 3, 4, 5], lengthForm: 2)),
            ("300 bytes in the form of 64 bits", frame(2, Array(repeating: 1, count: 300), lengthForm: 8)),
            ("a length of 2^63 (security 68)", [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            ("a length of 2^64 - 1", [0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]),
            ("a close of one byte (§5.5.1)", frame(8, [3])), ("a close with code 999", frame(8, [3, 231])),
            ("a close with code 1005 (§7.4.1)", frame(8, [3, 237])), ("a close with code 1015", frame(8, [3, 247])),
            ("a close with code 2000", frame(8, [7, 208])), ("a close with code 5000", frame(8, [19, 136])),
        ] as [(String, [UInt8])])
    func refused(what: String, stream: [UInt8]) {
        let run = Run.runAllSplits(stream)
        #expect(run.violation == .malformedFrame, "\(what)")
        #expect(!run.items.contains { if case .close = $0 { true } else { false } })
    }

    @Test("A server refuses unmasked frames (§5.1)")
    func unmaskedClient() {
        #expect(Run.runAllSplits(frame(1, "x"), role: .server).violation == .malformedFrame)
    }

    @Test("A huge length allocates nothing: the head is consumed, and the content awaited")
    func hugeLength() {
        let run = Run.run([[0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255, 1, 2]], limit: .max)
        #expect(run == Run())
        #expect(
            Run.run([[0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255], Array(repeating: 1, count: 65)], limit: 64)
                .violation == .messageTooLarge)
    }

    @Test(
        "Text that is not UTF-8 is refused, also across fragments and split at every byte (§8.1)",
        arguments: [
            [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
            [0xF0, 0x80, 0x80, 0x80],
            [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80], [0xBF], [0xFE],
            [0xFF], [0xC2], [0xE2, 0x82],
            [0xF0, 0x9F, 0x98], [0xC2, 0x41], [0xE2, 0x28, 0xA1], [0xF0, 0x28, 0x8C, 0xBC],
        ] as [[UInt8]])
    func badText(bad: [UInt8]) {
        let text = Array("κόσμε".utf8) + bad
        #expect(Run.runAllSplits(frame(1, text)).violation == .invalidText)
        for cut in text.indices {
            let stream = frame(1, Array(text[..<cut]), isFinal: false) + frame(0, Array(text[cut...]))
            #expect(Run.run([stream]).violation == .invalidText, "fragments at \(cut)")
        }
        #expect(Run.runAllSplits(frame(2, text)).items == [.message(.binary, text)])
    }

    @Test("Valid text is read, with characters split at every byte (§8.1)")
    func goodText() {
        let text = Array("aé€😀\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\u{D7FF}\u{E000} and some more of it".utf8)
        for cut in text.indices {
            let stream = frame(1, Array(text[..<cut]), isFinal: false) + frame(0, Array(text[cut...]))
            #expect(Run.runAllSplits(stream).items == [.message(.text, text)])
        }
    }

    @Test("Invalid text is refused at once, not at the end of the message (§8.1)")
    func failsFast() {
        #expect(
            Run.run([Array(frame(1, [0x41, 0xFF] + Array(repeating: 0x41, count: 50))[..<4])]).violation == .invalidText
        )
    }

    @Test("Close frames with and without a reason are read, and later frames are ignored (§5.5.1)")
    func closes() {
        #expect(Run.runAllSplits(frame(8)).items == [.close(nil)])
        #expect(Run.runAllSplits(frame(8, [3, 232])).items == [.close(WebSocketClose(.normal))])
        #expect(
            Run.runAllSplits(frame(8, [3, 233] + Array("bye".utf8)) + [0xFF, 0xFF]).items == [
                .close(WebSocketClose(.goingAway, reason: "bye"))
            ])
        for code: UInt16 in [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
        ] {
            #expect(Run.run([frame(8, [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)])]).violation == nil)
        }
        #expect(Run.runAllSplits(frame(8, [3, 232, 0xFF])).violation == .invalidText)
    }

    @Test("A message beyond the limit is refused, in one frame or many; so are endless empty fragments (§10.4)")
    func limits() {
        #expect(Run.runAllSplits(frame(2, Array(repeating: 1, count: 101)), limit: 100).violation == .messageTooLarge)
        let many = frame(2, [1], isFinal: false) + Array(repeating: frame(0, [1], isFinal: false), count: 100).joined()
        #expect(Run.run([many], limit: 100).violation == .messageTooLarge)
        #expect(
            Run.run([
                frame(1, "x", isFinal: false) + Array(repeating: frame(0, "", isFinal: false), count: 1_001).joined()
            ]).violation == .webSocketFlood)
        // A connection that only sends pings for a year.
        #expect(Run.run([Array(Array(repeating: frame(9), count: 5_000).joined())]).items.count == 5_000)
    }

    @Test(
        "A frame that announces more than the limit is refused before its content arrives (§10.4)",
        arguments: [
            ([], 101), ([], UInt64(Int64.max)), ([2, 1, 1], 100), ([2, 1, 1, 0, 1, 1], 99),
        ] as [([UInt8], UInt64)])
    func announcedLength(_ before: [UInt8], _ length: UInt64) {
        let opcode: UInt8 = before.isEmpty ? 0x82 : 0x80
        let short =
            [opcode]
            + (length < 126
                ? [UInt8(length)] : [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) })
        #expect(Run.runAllSplits(before + short, limit: 100).violation == .messageTooLarge)
        #expect(Run.runAllSplits(before + short, limit: .max).violation == nil)
        #expect(Run.runAllSplits(before + [opcode, UInt8(100 - before.count / 3)], limit: 100).violation == nil)
    }

    @Test("Bytes of every kind never trap, and an error is final")
    func noise() {
        var generator = SplitMix(state: 6455)
        for _ in 0..<3_000 {
            let stream = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let run = Run.run([stream], role: Bool.random(using: &generator) ? .client : .server)
            #expect(Run.run(stream.map { [$0] }, role: .client) == Run.run([stream], role: .client))
            #expect(run.items.count <= 30)
        }
    }
}
