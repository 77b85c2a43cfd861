// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// When a reader that takes data returns credit for it (RFC 9113 §6.9), and how much.
@Suite struct HTTP2CreditTests {
    /// A connection on which the response to one request arrives.
    final class Download {
        let codec: HTTP2Codec
        let stream: Int32
        /// The credit of each WINDOW_UPDATE frame for the stream.
        private(set) var credits: [Int] = []

        init(window: Int32? = nil) throws {
            codec = try HTTP2Codec(limits: HTTP2Limits())
            let request = HTTP2Request(
                method: .get, scheme: "https", authority: Array("example.org".utf8), path: Array("/".utf8),
                headers: [:],
                framing: .none)
            stream = try codec.submit(request, hasBody: false)
            flush()
            // The stream's window holds once the peer has acknowledged the settings.
            receive(
                HTTP2CodecTests.settings + HTTP2CodecTests.frame(4, 1, 0) + HTTP2CodecTests.headers(HTTP2CodecTests.ok))
            if let window { codec.resizeWindow(stream, to: window) }
            flush()
            credits = []
        }

        func receive(_ frames: [UInt8]) {
            let count = frames.withUnsafeBytes { codec.receive($0) }
            #expect(count == frames.count)
            for event in codec.takeEvents() {
                // The connection's credit is returned at once.
                if case .data(_, let range) = event { codec.arrived(range.count) }
            }
            flush()
        }

        /// Receives so many bytes, in frames of 16 KiB.
        func receive(count: Int) {
            for _ in 0..<count / 16_384 {
                receive(HTTP2CodecTests.frame(0, 0, 1, [UInt8](repeating: 7, count: 16_384)))
            }
        }

        func read(_ count: Int) {
            codec.consumed(count, on: stream)
            flush()
        }

        private func flush() {
            var output: [UInt8] = []
            codec.takeOutput(into: &output, upTo: .max)
            var position = output.starts(with: Array("PRI".utf8)) ? 24 : 0
            while position + 9 <= output.count {
                let length = output[position..<position + 3].reduce(0) { $0 << 8 | Int($1) }
                let payload = output[position + 9..<position + 9 + length]
                if output[position + 3] == 8, output[position + 8] == 1 {
                    credits.append(payload.reduce(0) { $0 << 8 | Int($1) })
                }
                position += 9 + length
            }
        }
    }

    @Test(
        "Credit is returned by an eighth of a large window, and by half of a small one",
        arguments: [
            (nil, 128 << 10), (512 << 10, 128 << 10), (1 << 20, 128 << 10), (2 << 20, 256 << 10), (8 << 20, 1 << 20),
        ] as [(Int32?, Int)])
    func shares(_ window: Int32?, _ share: Int) throws {
        let download = try Download(window: window)
        for round in 1...4 {
            download.receive(count: share)
            download.read(share - 1)
            #expect(download.credits.count == round - 1)
            download.read(1)
            #expect(download.credits == Array(repeating: share, count: round))
        }
    }

    @Test("What the reader has not taken gets no credit, however much has arrived")
    func unread() throws {
        let download = try Download(window: 2 << 20)
        download.receive(count: 1 << 20)
        download.read(1)
        #expect(download.credits == [])
        download.read((256 << 10) - 1)
        #expect(download.credits == [256 << 10])
        download.read(768 << 10)
        #expect(download.credits == [256 << 10, 768 << 10])
    }

    @Test("Padding gets credit with the data that it belongs to (RFC 9113 §6.1)")
    func padding() throws {
        let download = try Download()
        // 255 bytes of padding and its length field, and 16,000 bytes of data.
        let frame = HTTP2CodecTests.frame(
            0, 8, 1, [255] + [UInt8](repeating: 7, count: 16_000) + [UInt8](repeating: 0, count: 255))
        for _ in 0..<9 {
            download.receive(frame)
            download.read(16_000)
        }
        #expect(download.credits == [9 * 16_256])
    }

    @Test("A window that shrinks is first made up for by the data that is taken")
    func shrinking() throws {
        let download = try Download(window: 1 << 20)
        download.receive(count: 512 << 10)
        download.codec.resizeWindow(download.stream, to: 256 << 10)
        // Half a MiB is left of the old window, a quarter is the new one.
        download.read(512 << 10)
        #expect(download.credits == [])
        download.receive(count: 512 << 10)
        download.read(512 << 10)
        #expect(download.credits.reduce(0, +) == 256 << 10)
    }

    @Test("A stream that has ended, or was reset, takes reads without a frame")
    func ended() throws {
        let download = try Download()
        download.receive(count: 128 << 10)
        download.codec.reset(download.stream, .cancel)
        download.read(128 << 10)
        download.read(1)
        #expect(download.credits == [])
    }
}
