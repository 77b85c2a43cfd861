// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct WebSocketSendingTests {
    func sent(_ role: WebSocketCodec.Role, _ use: (inout WebSocketCodec, inout [UInt8]) throws -> Void) rethrows
        -> [UInt8]
    {
        var codec = WebSocketCodec(role: role, allowsCompression: false)
        var output: [UInt8] = []
        try use(&codec, &output)
        return output
    }

    @Test(
        "A client masks with the given key, and a server reads it (§5.1, §5.3)",
        arguments: [0, 1, 7, 8, 9, 125, 126, 70_000])
    func masks(count: Int) throws {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let bytes = try sent(.client) { codec, output in
            try payload.withUnsafeBytes { try codec.send(.binary, $0, mask: 0xA1B2_C3D4, into: &output) }
        }
        #expect(bytes == frame(2, payload, mask: [0xA1, 0xB2, 0xC3, 0xD4]))
        #expect(WebSocketTranscript.run([bytes], role: .server).items == [.message(.binary, payload)])
        let plain = try sent(.server) { codec, output in
            try payload.withUnsafeBytes { try codec.send(.binary, $0, mask: 0xA1B2_C3D4, into: &output) }
        }
        #expect(plain == frame(2, payload))
    }

    @Test("A message in pieces may have a ping between them (§5.4)")
    func pieces() throws {
        let bytes = try sent(.server) { codec, output in
            try Array("Hel".utf8).withUnsafeBytes {
                try codec.send(.text, $0, at: .init(isFirst: true, isLast: false), mask: 0, into: &output)
            }
            try codec.sendPing([1], mask: 0, into: &output)
            try Array("lo".utf8).withUnsafeBytes {
                try codec.send(.text, $0, at: .init(isFirst: false, isLast: true), mask: 0, into: &output)
            }
        }
        #expect(bytes == frame(1, "Hel", isFinal: false) + frame(9, [1]) + frame(0, "lo"))
    }

    @Test("One close frame is sent, and nothing after it (§5.5.1)")
    func close() throws {
        let bytes = sent(.server) { codec, output in
            codec.sendClose(WebSocketClose(.normal, reason: "bye"), mask: 0, into: &output)
            codec.sendClose(nil, mask: 0, into: &output)
            #expect(throws: WireViolation.self) { try codec.sendPing([], mask: 0, into: &output) }
            #expect(throws: WireViolation.self) {
                try [UInt8]().withUnsafeBytes { try codec.send(.text, $0, mask: 0, into: &output) }
            }
        }
        #expect(bytes == frame(8, [3, 232] + Array("bye".utf8)))
        #expect(sent(.server) { $0.sendClose(WebSocketClose(.abnormal), mask: 0, into: &$1) } == frame(8))
    }

    @Test("A reason is cut between characters; a control frame beyond 125 bytes is refused")
    func longReasons() {
        let close = WebSocketClose(.normal, reason: String(repeating: "é", count: 100))
        #expect(close.reason.utf8.count == 122)
        var (codec, output) = (WebSocketCodec(role: .client, allowsCompression: false), [UInt8]())
        #expect(throws: WireViolation.self) {
            try codec.sendPing(Array(repeating: 0, count: 126), mask: 0, into: &output)
        }
        #expect(output.isEmpty)
    }
}
