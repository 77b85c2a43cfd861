// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct BrotliTests {
    static let text = ContentDecoderTests.text
    static let whole = Coded.brotli(text)

    @Test(
        "Every quality and window of the encoder is decoded",
        arguments: [(0, 10), (1, 16), (5, 22), (9, 18), (11, 24)] as [(CInt, CInt)])
    func everyQualityAndWindow(_ quality: CInt, _ window: CInt) throws {
        let noise = ContentDecoderTests.noise(100_000)
        for content in [[], [7], Self.text, noise, noise + noise] {
            let coded = Coded.brotli(content, quality: quality, window: window)
            #expect(try decode("br", coded) == content)
            #expect(try decode("BR", coded, pieces: 1000, room: 777) == content)
        }
    }

    @Test("Content cut anywhere is decoded equally") func cutAnywhere() throws {
        for place in 0...Self.whole.count {
            let cut = [Array(Self.whole[..<place]), [], Array(Self.whole[place...]), []]
            #expect(try decode("br", cut: cut) == Self.text, "\(place)")
            #expect(try decode("br", cut: cut, room: 1) == Self.text, "\(place)")
        }
        #expect(try decode("br", Self.whole, pieces: 1, room: 1) == Self.text)
    }

    /// RFC 7932 9.1, 9.2: WBITS, then ISLAST and ISLASTEMPTY.
    @Test("Empty content is decoded") func nothingInside() throws {
        for empty: [UInt8] in [[0x06], [0x3B], Coded.brotli([])] {
            #expect(try decode("br", empty).isEmpty)
        }
        #expect(try decode("br", []).isEmpty, "no byte at all is empty content")
    }

    @Test("Truncated content is an error (security 49)") func truncated() {
        for end in 1..<Self.whole.count {
            #expect(violation { _ = try decode("br", Array(Self.whole[..<end])) } == .truncatedContent, "\(end)")
        }
    }

    @Test("Damaged content is an error, however it is cut (security 49)") func damaged() {
        for place in Self.whole.indices {
            for bit in 0..<8 as Range<UInt8> {
                var broken = Self.whole
                broken[place] ^= 1 << bit
                let whole = outcome("br", broken)
                #expect(outcome("br", broken, pieces: 1, room: 100) == whole, "\(place) \(bit)")
            }
        }
    }

    @Test("Bytes that are not Brotli are an error") func bytesThatAreNotBrotliAreAnError() {
        let cases: [(String, [UInt8])] = [
            ("HTML", bytes("<html><body>not brotli at all</body></html>")),
            ("a large window, which RFC 7932 9.1 does not know", [0x11, 0x06, 0, 0]),
            ("padding bits that are not zero, RFC 7932 9.2", [0x0E]),
            ("gzip", Coded.deflated(Self.text, bits: 31)),
        ]
        for (name, input) in cases {
            #expect(violation { _ = try decode("br", input) } == .contentDecodingFailed, "\(name)")
            #expect(violation { _ = try decode("br", input, pieces: 1, room: 1) } == .contentDecodingFailed, "\(name)")
        }
    }

    @Test("Bytes after the end are ignored on the wire, as with gzip, and are an error within another coding")
    func padding()
        throws
    {
        for tail: [UInt8] in [[0], [0, 0, 0], bytes("\n"), Self.whole] {
            let padded = Self.whole + tail
            #expect(try decode("br", padded) == Self.text)
            #expect(try decode("br", padded, pieces: 1, room: 1) == Self.text)
            let wrapped = Coded.deflated(padded, bits: 31)
            #expect(violation { _ = try decode("br, gzip", wrapped) } == .contentDecodingFailed)
            #expect(violation { _ = try decode("br, gzip", wrapped, pieces: 1, room: 1) } == .contentDecodingFailed)
        }
    }

    @Test("A decompression bomb of one layer is stopped (security 48)") func bombs() throws {
        let harmless = Coded.brotli([UInt8](repeating: 0, count: 4 << 20))
        #expect(try decode("br", harmless, room: 1 << 16).count == 4 << 20, "below the threshold")
        let bomb = Coded.brotli([UInt8](repeating: 0, count: 64 << 20))
        #expect(bomb.count < 1000)
        #expect(violation { _ = try decode("br", bomb, room: 1 << 16) } == .contentDecodingLimit)
        #expect(violation { _ = try decode("br, br", Coded.brotli(bomb), room: 1 << 16) } == .contentDecodingLimit)
        var limits = ContentDecodingLimits()
        limits.outputSize = 1000
        #expect(violation { _ = try decode("br", Self.whole, limits: limits) } == .contentDecodingLimit)
        limits.outputSize = Int64(Self.text.count)
        #expect(try decode("br", Self.whole, limits: limits) == Self.text)
    }
}
