// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct ContentDecoderTests {
    static let text = bytes(String(repeating: "hello, hello, content coding. ", count: 40))

    /// Incompressible bytes, equal in every run.
    static func noise(_ count: Int) -> [UInt8] {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }

    static let codings: [(String, [UInt8])] = {
        let gzip = Coded.deflated(text, bits: 31)
        let zlib = Coded.deflated(text, bits: 15)
        return [
            ("gzip", gzip), ("X-GZip", gzip), ("deflate", zlib), ("deflate", Coded.deflated(text, bits: -15)),
            (" , gzip ,identity", gzip),
            ("gzip, deflate", Coded.deflated(gzip, bits: 15)),
            ("deflate, gzip, gzip", Coded.deflated(Coded.deflated(zlib, bits: 31), bits: 31)),
            ("gzip", gzip + bytes("padding")), ("gzip", gzip + [0, 0, 0]), ("deflate", zlib + [1, 2]),
            ("gzip", Coded.deflated(Array(text[..<50]), bits: 31) + Coded.deflated(Array(text[50...]), bits: 31)),
        ]
    }()

    @Test("Every coding is decoded, however the content is cut") func everyCodingHoweverCut() throws {
        for (coding, input) in Self.codings {
            #expect(try decode(coding, input) == Self.text)
            for (pieces, room) in [(1, 1), (1, 4096), (.max, 1), (3, 7), (20, 5)] {
                #expect(
                    try decode(coding, input, pieces: pieces, room: room) == Self.text, "\(coding) \(pieces) \(room)")
            }
        }
    }

    @Test("Up to five codings over each other are decoded, in any order") func stacked() throws {
        let coders: [(String, ([UInt8]) -> [UInt8])] = [
            ("gzip", { Coded.deflated($0, bits: 31) }), ("deflate", { Coded.deflated($0, bits: 15) }),
            ("br", { Coded.brotli($0) }), ("zstd", { Coded.zstd($0) }),
        ]
        var stacks: [(names: [String], content: [UInt8])] = [([], Self.text)]
        for depth in 1...5 {
            // All pairs and triples; of more layers, each coding repeated over one of each.
            let below = depth < 4 ? stacks : stacks.suffix(4)
            stacks = below.flatMap { stack in coders.map { (stack.names + [$0.0], $0.1(stack.content)) } }
            for stack in stacks {
                let coding = stack.names.joined(separator: ", ")
                #expect(try decode(coding, stack.content) == Self.text, "\(coding)")
                #expect(try decode(coding, stack.content, pieces: 1, room: 1) == Self.text, "\(coding)")
                #expect(
                    violation { _ = try decode(coding, stack.content.dropLast()) } == .truncatedContent, "\(coding)")
            }
        }
    }

    @Test("Unknown codings are left unchanged, and empty content stays empty")
    func unknownCodingsAreLeftUnchangedAndEmptyContentStaysEmpty() throws {
        for coding in ["", "identity", "compress", "gzip, compress", "dcb", "g zip", ","] {
            #expect(try decode(coding, [1, 2]) == [1, 2])
        }
        #expect(violation { _ = try decode("gzip,gzip,gzip,gzip,gzip,gzip", []) } == .tooManyCodings, "security 48")
        #expect(try decode("gzip", []).isEmpty && decode("br, zstd", []).isEmpty)
        #expect(
            try decode("deflate", [3, 0]).isEmpty && decode("deflate", [3, 0, 1, 2]).isEmpty, "two bytes are a stream")
    }

    /// Damaged or truncated content is an error and never counts as complete (security 49).
    @Test("Damaged or truncated content is an error (security 49)") func damaged() {
        for (coding, input) in [
            ("gzip", Self.codings[0].1), ("deflate", Self.codings[2].1), ("deflate", Self.codings[3].1),
        ] {
            for end in 1..<input.count {
                #expect(
                    violation { _ = try decode(coding, Array(input[..<end])) } == .truncatedContent, "\(coding) \(end)")
            }
        }
        var broken = Self.codings[0].1
        broken[broken.count - 6] ^= 1  // the checksum
        #expect(violation { _ = try decode("gzip", broken) } == .contentDecodingFailed)
        for bad in ["plain text", "\u{1f}\u{1f}", "<html>"] {
            #expect(violation { _ = try decode("gzip", bytes(bad)) } == .contentDecodingFailed)
        }
        #expect(violation { _ = try decode("gzip", Self.codings[0].1 + [0x1F, 0x00]) } == .contentDecodingFailed)
        #expect(violation { _ = try decode("gzip", Self.codings[0].1 + [0x1F]) } == .truncatedContent)
    }

    @Test("A decompression bomb is stopped (security 48)") func bombs() throws {
        let zeros = [UInt8](repeating: 0, count: 6 << 20)
        let bomb = Coded.deflated(zeros, bits: 31)
        #expect(try decode("gzip", bomb, room: 1 << 16).count == zeros.count, "a single layer is honest")
        #expect(
            violation { _ = try decode("gzip, gzip", Coded.deflated(bomb, bits: 31), room: 1 << 16) }
                == .contentDecodingLimit)
        var limits = ContentDecodingLimits()
        limits.outputSize = 1000
        #expect(violation { _ = try decode("gzip", Self.codings[0].1, limits: limits) } == .contentDecodingLimit)
    }

    @Test("Input that expands to nothing is limited like content (security 48)") func hiddenBombs() throws {
        func wrapped(_ inner: [UInt8]) -> [UInt8] {
            Coded.deflated(Coded.deflated(Coded.deflated(inner, bits: 31), bits: 31), bits: 31)
        }
        let tiny = Coded.deflated([1], bits: 31)
        let padded = tiny + [UInt8](repeating: 0, count: 6 << 20)
        #expect(try decode("gzip", padded).count == 1, "what is on the wire may be padded")
        #expect(violation { _ = try decode("gzip, gzip, gzip, gzip", wrapped(padded)) } == .contentDecodingFailed)
        let empty = Coded.deflated([], bits: 31)
        let members = [UInt8]((0..<(6 << 20) / empty.count).map { _ in empty }.joined())
        #expect(violation { _ = try decode("gzip, gzip, gzip, gzip", wrapped(members)) } == .contentDecodingLimit)
    }
}
