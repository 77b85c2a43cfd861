// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
@testable import URLLoadingWire

struct HTTP3FrameLinesTests {
    private static let control: [UInt8] = [0, 4, 3, 6, 0x44, 0, 0x80, 0x0F, 7, 0, 2, 9, 9, 7, 1, 0]
    private static let request: [UInt8] = [1, 3, 7, 7, 7, 0, 0x40, 2, 7, 7, 0x21, 0]

    private func lines(_ bytes: [UInt8], size: Int, isEnd: Bool = false, on stream: Int64) -> [String] {
        var lines: [String] = []
        var frames = HTTP3FrameLines()
        for start in stride(from: 0, to: bytes.count, by: size) {
            let end = min(start + size, bytes.count)
            lines += bytes[start..<end].withUnsafeBytes {
                frames.lines($0, isEnd: isEnd && end == bytes.count, on: stream)
            }
        }
        return lines
    }

    @Test("Frames are found however the bytes are split", arguments: 1...16) func split(size: Int) {
        #expect(
            lines(Self.control, size: size, on: 3) == [
                "control stream: SETTINGS, 3 bytes", "control stream: PRIORITY_UPDATE, 2 bytes",
                "control stream: GOAWAY, 1 bytes",
            ])
        #expect(
            lines(Self.request, size: size, isEnd: true, on: 4) == [
                "stream 4: HEADERS, 3 bytes", "stream 4: DATA, 2 bytes", "stream 4: frame of type 33, 0 bytes",
                "stream 4 ends",
            ])
    }

    @Test("Streams without frames are shown as pieces") func pieces() {
        #expect(lines([2, 1, 2, 3], size: 4, on: 7) == ["QPACK encoder stream, 3 bytes"])
        #expect(
            lines([3, 1, 2, 3], size: 2, on: 11) == ["QPACK decoder stream, 1 bytes", "QPACK decoder stream, 2 bytes"])
        #expect(lines([0x40, 0x54, 9], size: 1, on: 15) == ["stream of type 84, 1 bytes"])
        #expect(lines([], size: 1, on: 15) == [])
    }

    @Test("A log has no tokens") func tokens() {
        func shown(_ text: String) -> String {
            String(decoding: Array(text.utf8).withUnsafeBytes { QUICLog.withoutTokens($0) }, as: UTF8.self)
        }
        #expect(
            shown(#"{"data":{"frames":[{"frame_type":"new_token","length":4,"token":{"data":"0badcafe"}},{"x":1}]}}"#)
                == #"{"data":{"frames":[{"frame_type":"new_token","length":4,"token":{}},{"x":1}]}}"#)
        #expect(
            shown(#"{"stateless_reset_token":{"data":"00ff"},"retry_token":{"data":"1"}}"#)
                == #"{"stateless_reset_token":{},"retry_token":{}}"#)
        #expect(shown(#"{"token":{"#) == #"{"token":{"#)
        #expect(shown(#"{"a":{"data":"00ff"}}"#) == #"{"a":{"data":"00ff"}}"#)
    }
}

#endif
