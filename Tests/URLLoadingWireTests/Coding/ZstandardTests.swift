// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct ZstandardTests {
    static let text = ContentDecoderTests.text
    static let whole = Coded.zstd(text)
    static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]

    /// A frame of one raw block with `hello`, after the given rest of a header (RFC 8878 §3.1.1.2).
    static func hello(_ header: [UInt8]) -> [UInt8] { magic + header + [5 << 3 | 1, 0, 0] + bytes("hello") }

    @Test(
        "Every level and window of the encoder is decoded",
        arguments: [(-5, 0), (1, 10), (3, 0), (19, 23)] as [(CInt, CInt)])
    func everyLevelAndWindow(_ level: CInt, _ window: CInt) throws {
        let noise = ContentDecoderTests.noise(150_000)
        for content in [[], [7], Self.text, noise, noise + noise] {
            for (checksum, sized) in [(true, true), (true, false), (false, true), (false, false)] {
                let coded = Coded.zstd(content, level: level, window: window, checksum: checksum, sized: sized)
                #expect(try decode("zstd", coded) == content)
                #expect(try decode("Zstd", coded, room: 1 << 20) == content)
                #expect(try decode("zstd", coded, pieces: 1000, room: 777) == content)
            }
        }
    }

    @Test("Content cut anywhere is decoded equally") func cutAnywhere() throws {
        let coded =
            Coded.skippable([1, 2, 3]) + Coded.zstd(Array(Self.text[..<99]))
            + Coded.zstd(Array(Self.text[99...]), sized: false)
        for place in 0...coded.count {
            let cut = [Array(coded[..<place]), [], Array(coded[place...]), []]
            #expect(try decode("zstd", cut: cut) == Self.text, "\(place)")
            #expect(try decode("zstd", cut: cut, room: 1) == Self.text, "\(place)")
        }
        #expect(try decode("zstd", coded, pieces: 1, room: 1) == Self.text)
        let slow = coded.flatMap { [[$0]] + [[UInt8]](repeating: [], count: 40) }
        #expect(try decode("zstd", cut: slow) == Self.text, "nothing comes, forty times")
    }

    @Test("Consecutive and skippable frames are decoded (RFC 8878 §3.1)") func frames() throws {
        let a = Coded.zstd(Array(Self.text[..<700]))
        let b = Coded.zstd(Array(Self.text[700...]), checksum: false)
        let empty = Coded.zstd([])
        let skips = (0..<16 as Range<UInt8>).flatMap {
            Coded.skippable([UInt8](repeating: $0, count: Int($0) * 100), kind: $0)
        }
        for coded in [
            a + b, skips + a + b, a + skips + b, a + b + skips, a + empty + empty + b,
            empty + a + Coded.skippable([]) + b,
        ] {
            #expect(try decode("zstd", coded) == Self.text)
            #expect(try decode("zstd", coded, pieces: 1, room: 3) == Self.text)
            #expect(try decode("zstd, gzip", Coded.deflated(coded, bits: 31), pieces: 9, room: 11) == Self.text)
        }
        for coded in [empty, empty + empty, skips, Coded.skippable([])] {
            #expect(try decode("zstd", coded).isEmpty && decode("zstd", coded, pieces: 1, room: 1).isEmpty)
        }
        #expect(try decode("zstd", []).isEmpty, "no byte at all is empty content")
    }

    @Test("Truncated content is an error (security 49)") func truncated() {
        for coded in [
            Self.whole, Coded.zstd(Self.text, checksum: false, sized: false), Coded.skippable(bytes("skipped")),
        ] {
            for end in 1..<coded.count {
                #expect(violation { _ = try decode("zstd", Array(coded[..<end])) } == .truncatedContent, "\(end)")
                let second = Self.whole + coded[..<end]
                #expect(
                    violation { _ = try decode("zstd", second, pieces: 7) } == .truncatedContent, "\(end) of the second"
                )
            }
        }
    }

    @Test("A damaged byte never yields other content, however it is cut (security 49)") func damaged() {
        for place in Self.whole.indices {
            for bit in 0..<8 as Range<UInt8> {
                var broken = Self.whole
                broken[place] ^= 1 << bit
                let whole = outcome("zstd", broken)
                if case .content(let content) = whole { #expect(content == Self.text, "\(place) \(bit)") }
                #expect(outcome("zstd", broken, pieces: 1, room: 100) == whole, "\(place) \(bit)")
            }
        }
    }

    @Test("Every form of the frame header is read") func headersAsTheyMayBe() throws {
        let cases: [(String, [UInt8])] = [
            ("single segment, one byte of size", [0x20, 5]), ("a window of 1 KiB", [0x00, 0x00]),
            ("a window of 8 MiB", [0x00, 13 << 3]), ("dictionary 0, which is none", [0x01, 0x58, 0]),
            ("eight bytes of size", [0xC0, 0x58, 5, 0, 0, 0, 0, 0, 0, 0]),
            ("the longest", [0xC3, 0x58, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]),
            ("the unused bit, RFC 8878 3.1.1.1.1.3", [0x30, 5]),
        ]
        for (name, header) in cases {
            #expect(try decode("zstd", Self.hello(header)) == bytes("hello"), "\(name)")
            #expect(try decode("zstd", Self.hello(header), pieces: 1, room: 1) == bytes("hello"), "\(name)")
        }
    }

    @Test("Bytes that are not Zstandard, or beyond its limits, are an error")
    func bytesThatAreNotZstandardOrBeyondItsLimitsAreAnError() {
        let block: [UInt8] = [0x20, 5]
        let cases: [(String, [UInt8])] = [
            ("HTML", bytes("<html>")), ("almost the magic", [0x28, 0xB5, 0x2F, 0xFE]),
            ("almost to skip", [0x50, 0x2A, 0x4D, 0x19]),
            ("zstd before its RFC", [0x27] + Self.whole.dropFirst()),
            ("a dictionary", [0x30, 0xA4, 0x37, 0xEC, 1, 0, 0, 0]),
            ("a window of 9 MiB", Self.hello([0x00, 13 << 3 | 1])), ("a window of 3.75 TiB", Self.hello([0x00, 0xFF])),
            ("a segment of more than 8 MiB", Self.hello([0xA0, 1, 0, 0x80, 0])),
            ("a segment of 2^64 - 1", Self.hello([0xE0] + [UInt8](repeating: 0xFF, count: 8))),
            ("an unknown dictionary", Self.hello([0x01, 0x58, 7])), ("the reserved bit", Self.hello([0x28, 5])),
            ("less than it says", Self.hello([0x20, 6])), ("more than it says", Self.hello([0x20, 4])),
            ("a block of no type", Self.magic + block + [7, 0, 0]),
            ("a block beyond 128 KiB", Self.magic + [0, 0x58, 1, 0, 0xFF] + [0]),
            ("padding", Self.whole + [0]), ("a line feed", Self.whole + [10]),
            ("text behind it", Self.whole + bytes("padding")),
            ("padding behind a skipped frame", Self.whole + Coded.skippable([1]) + [0]),
        ]
        for (name, input) in cases {
            #expect(violation { _ = try decode("zstd", input) } == .contentDecodingFailed, "\(name)")
            #expect(violation { _ = try decode("zstd", input, room: 1 << 18) } == .contentDecodingFailed, "\(name)")
            #expect(
                violation { _ = try decode("zstd", input, pieces: 1, room: 1) } == .contentDecodingFailed, "\(name)")
        }
    }

    /// RFC 8878 §3.1.1.2.2: a block of four bytes that stands for 128 KiB of one byte.
    static func bomb(_ blocks: Int) -> [UInt8] {
        (0..<blocks).reduce(into: magic + [0, 0x58]) { $0 += [0x02 | ($1 == blocks - 1 ? 1 : 0), 0, 0x10, 0] }
    }

    @Test("A decompression bomb of one layer is stopped (security 48)") func bombs() throws {
        #expect(try decode("zstd", Self.bomb(32), room: 1 << 16).count == 4 << 20, "below the threshold")
        #expect(violation { _ = try decode("zstd", Self.bomb(33), room: 1 << 16) } == .contentDecodingLimit)
        #expect(
            violation { _ = try decode("zstd, zstd", Coded.zstd(Self.bomb(10_000)), room: 1 << 16) }
                == .contentDecodingLimit)
        let many = [UInt8]((0..<20).map { _ in Self.bomb(2) }.joined())
        #expect(violation { _ = try decode("zstd", many, room: 1 << 16) } == .contentDecodingLimit, "over all frames")
        var limits = ContentDecodingLimits()
        limits.outputSize = 1000
        #expect(violation { _ = try decode("zstd", Self.whole, limits: limits) } == .contentDecodingLimit)
    }

    @Test("Input that expands to nothing is limited like content (security 48)") func hiddenBombs() throws {
        let skips = Coded.skippable([UInt8](repeating: 0, count: 6 << 20))
        #expect(try decode("zstd", skips).isEmpty, "on the wire nothing was hidden")
        for (coding, coded) in [("zstd, br", Coded.brotli(skips)), ("zstd, zstd", Coded.zstd(skips))] {
            #expect(violation { _ = try decode(coding, coded) } == .contentDecodingLimit, "\(coding)")
        }
        let empty = Self.magic + [0x20, 0, 1, 0, 0] + Coded.skippable([UInt8](repeating: 0, count: 1000))
        let frames = [UInt8]((0..<(5 << 20) / empty.count).map { _ in empty }.joined())
        #expect(violation { _ = try decode("zstd, br", Coded.brotli(frames)) } == .contentDecodingLimit)
    }
}
