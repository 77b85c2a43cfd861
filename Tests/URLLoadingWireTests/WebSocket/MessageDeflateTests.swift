// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 7692 §7.
@Suite struct MessageDeflateTests {
    @Test("The examples of the specification are read (§7.2.3)")
    func examples() {
        let agreed = MessageDeflate()
        let once: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let hello = WebSocketTranscript.Item.message(.text, Array("Hello".utf8))
        #expect(WebSocketTranscript.runAllSplits([0xC1, 0x07] + once, deflate: agreed).items == [hello])
        let fragments: [UInt8] = [0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00]
        #expect(WebSocketTranscript.runAllSplits(fragments, deflate: agreed).items == [hello])
        // §7.2.3.2: the second message refers to the first.
        let again: [UInt8] = [0xC1, 0x07] + once + [0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00]
        #expect(WebSocketTranscript.runAllSplits(again, deflate: agreed).items == [hello, hello])
        // §7.2.3.3: no compression; §7.2.3.4: a final block; §7.2.3.5: two blocks.
        for block: [UInt8] in [
            [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
        ] {
            #expect(WebSocketTranscript.runAllSplits(frame(1, block, reserved: 4), deflate: agreed).items == [hello])
        }
        // §7.2.3.6: an empty message.
        #expect(WebSocketTranscript.runAllSplits([0xC1, 0x01, 0x00], deflate: agreed).items == [.message(.text, [])])
    }

    @Test("Compressed and uncompressed messages may alternate")
    func mixed() {
        let stream = frame(1, "plain") + [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00] + frame(2, [1])
        #expect(
            WebSocketTranscript.runAllSplits(stream, deflate: MessageDeflate()).items == [
                .message(.text, Array("plain".utf8)), .message(.text, Array("Hello".utf8)), .message(.binary, [1]),
            ])
    }

    @Test("RSV1 on a continuation frame, and invalid deflate data, are refused (§6.1)")
    func refused() {
        let agreed = MessageDeflate()
        let continued = frame(1, [0xF2], isFinal: false, reserved: 4) + frame(0, [0x48], reserved: 4)
        #expect(WebSocketTranscript.runAllSplits(continued, deflate: agreed).violation == .malformedFrame)
        #expect(
            WebSocketTranscript.runAllSplits(frame(1, [0xFF, 0xFF, 0xFF], reserved: 4), deflate: agreed).violation
                == .contentDecodingFailed)
    }

    @Test("A message that ends within a block is refused (§7.2.2)", arguments: [false, true])
    func truncated(_ forgets: Bool) throws {
        var agreed = MessageDeflate()
        agreed.serverNoContextTakeover = forgets
        let deflater = try #require(MessageDeflater(windowBits: 15, forgets: true))
        let text = (0..<400).map { UInt8(truncatingIfNeeded: $0 * $0) }
        let payload = try text.withUnsafeBytes { try deflater.deflate($0) }
        // The last byte is only the header of the empty block that the receiver adds.
        for count in 1..<payload.count - 1 {
            let run = WebSocketTranscript.run([frame(2, Array(payload[..<count]), reserved: 4)], deflate: agreed)
            #expect(run.items.isEmpty && run.violation == .contentDecodingFailed, "\(count) of \(payload.count) bytes")
        }
        // An uncompressed block states its length.
        let stored: [UInt8] = [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C]
        #expect(
            WebSocketTranscript.run([frame(1, stored, reserved: 4)], deflate: agreed).violation
                == .contentDecodingFailed)
    }

    @Test("A final block, and a message without a block, are complete; the next message is read (§7.2.3)")
    func wholeWithoutABlock() {
        let last: [UInt8] = [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let hello = WebSocketTranscript.Item.message(.text, Array("Hello".utf8))
        let stream = frame(1, last, reserved: 4) + frame(1, [], reserved: 4) + frame(1, last, reserved: 4)
        #expect(
            WebSocketTranscript.runAllSplits(stream, deflate: MessageDeflate()).items == [
                hello, .message(.text, []), hello,
            ])
    }

    @Test("A decompression bomb ends at the limit")
    func bomb() throws {
        let deflater = try #require(MessageDeflater(windowBits: 15, forgets: true))
        let payload = try [UInt8](repeating: 0, count: 8 << 20).withUnsafeBytes { try deflater.deflate($0) }
        #expect(payload.count < 10_000)
        #expect(
            WebSocketTranscript.run([frame(2, payload, reserved: 4)], deflate: MessageDeflate(), limit: 1 << 20)
                .violation == .messageTooLarge)
    }

    @Test(
        "Messages of every size are read back, with and without context takeover", arguments: [false, true], 9...15)
    func roundTrip(forgets: Bool, bits: Int) throws {
        var agreed = MessageDeflate()
        (agreed.serverWindowBits, agreed.serverNoContextTakeover) = (bits, forgets)
        let deflater = try #require(MessageDeflater(windowBits: bits, forgets: forgets))
        var generator = SplitMix(state: UInt64(bits))
        var (stream, expected) = ([UInt8](), [WebSocketTranscript.Item]())
        for count in [0, 1, 5, 1_000, 70_000, 3] {
            let message = (0..<count).map { _ in UInt8.random(in: 0...7, using: &generator) }
            let payload = try message.withUnsafeBytes { try deflater.deflate($0) }
            stream += frame(2, payload, reserved: 4)
            expected.append(.message(.binary, message))
        }
        #expect(WebSocketTranscript.run([stream], deflate: agreed).items == expected)
    }

    @Test("zlib cannot compress with a raw window of 8 bits")
    func smallestWindow() {
        #expect(MessageDeflater(windowBits: 8, forgets: false) == nil)
        #expect(MessageInflater(windowBits: 8, forgets: false) != nil)
    }

    @Test(
        "Responses to the offer are accepted or refused (§7.1)",
        arguments: [
            ("permessage-deflate", true), ("Permessage-Deflate", true),
            ("permessage-deflate; server_no_context_takeover", true),
            ("permessage-deflate; client_max_window_bits=10; server_max_window_bits=\"12\"", true),
            ("permessage-deflate; client_max_window_bits", false),
            ("permessage-deflate; server_max_window_bits=7", false),
            ("permessage-deflate; server_max_window_bits=16", false),
            ("permessage-deflate; server_max_window_bits=010", false),
            ("permessage-deflate; server_no_context_takeover=1", false), ("permessage-deflate; unknown", false),
            ("permessage-deflate; client_no_context_takeover; client_no_context_takeover", false),
            ("permessage-deflate, permessage-deflate", false), ("x-webkit-deflate-frame", false), ("", false),
            ("permessage-deflate;", false),
        ])
    func answers(value: String, isRight: Bool) {
        #expect((MessageDeflate.accepted(value, forgets: false) != nil) == isRight)
    }

    @Test("A client that required no context takeover refuses other responses (§7.1.1)")
    func forgetting() {
        #expect(MessageDeflate.accepted("permessage-deflate", forgets: true) == nil)
        let agreed = MessageDeflate.accepted("permessage-deflate; server_no_context_takeover", forgets: true)
        #expect(agreed?.clientNoContextTakeover == true && agreed?.serverNoContextTakeover == true)
        #expect(
            MessageDeflate.offer(forgets: true)
                == "permessage-deflate; client_max_window_bits; server_no_context_takeover; client_no_context_takeover")
    }
}
