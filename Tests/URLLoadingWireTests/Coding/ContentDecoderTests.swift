import URLLoadingCZlib
import Testing

@testable import URLLoadingWire

@Suite struct ContentDecoderTests {
    /// `bits`: 31 gzip, 15 zlib, -15 raw.
    static func deflated(_ input: [UInt8], bits: CInt) -> [UInt8] {
        var stream = z_stream()
        deflateInit2_(&stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        defer { deflateEnd(&stream) }
        var input = input
        var output = [UInt8](repeating: 0, count: input.count + 1000)
        let count = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = CUnsignedInt(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = CUnsignedInt(output.count)
                _ = deflate(&stream, Z_FINISH)
                return output.count - Int(stream.avail_out)
            }
        }
        return Array(output[..<count])
    }

    static let text = bytes(String(repeating: "hello, hello, content coding. ", count: 40))

    func decode(
        _ coding: String, _ input: [UInt8], pieces: Int = .max, room: Int = 4096, limits: ContentDecodingLimits = .init()
    ) throws -> [UInt8] {
        guard var decoder = try ContentDecoder(contentEncoding: coding, limits: limits) else { return input }
        var result: [UInt8] = []
        var rest = input[...]
        var output = [UInt8](repeating: 0, count: room)
        while !rest.isEmpty {
            var piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            while true {
                let step = try piece.withUnsafeBufferPointer { (input) throws(WireViolation) in
                    try output.withUnsafeMutableBufferPointer { (output) throws(WireViolation) in
                        try decoder.decode(UnsafeRawBufferPointer(input), into: UnsafeMutableRawBufferPointer(output))
                    }
                }
                result += output[..<step.produced]
                piece.removeFirst(step.consumed)
                if step == (0, 0) { break }
            }
            #expect(piece.isEmpty)
        }
        try decoder.finish()
        return result
    }

    static let codings: [(String, [UInt8])] = {
        let gzip = deflated(text, bits: 31), zlib = deflated(text, bits: 15)
        return [
            ("gzip", gzip), ("X-GZip", gzip), ("deflate", zlib), ("deflate", deflated(text, bits: -15)), (" , gzip ,identity", gzip),
            ("gzip, deflate", deflated(gzip, bits: 15)), ("deflate, gzip, gzip", deflated(deflated(zlib, bits: 31), bits: 31)),
            ("gzip", gzip + bytes("padding")), ("gzip", gzip + [0, 0, 0]), ("deflate", zlib + [1, 2]),
            ("gzip", deflated(Array(text[..<50]), bits: 31) + deflated(Array(text[50...]), bits: 31)),
        ]
    }()

    @Test func everyCodingHoweverCut() throws {
        for (coding, input) in Self.codings {
            #expect(try decode(coding, input) == Self.text)
            for (pieces, room) in [(1, 1), (1, 4096), (.max, 1), (3, 7), (20, 5)] {
                #expect(try decode(coding, input, pieces: pieces, room: room) == Self.text, "\(coding) \(pieces) \(room)")
            }
        }
    }

    @Test func whatIsLeftAsItIs() throws {
        for coding in ["", "identity", "br", "gzip, br", "zstd", "g zip", ","] {
            #expect(try decode(coding, [1, 2]) == [1, 2])
        }
        #expect(violation { _ = try decode("gzip,gzip,gzip,gzip,gzip,gzip", []) } == .tooManyCodings, "security 48")
        #expect(try decode("gzip", []).isEmpty)
        #expect(try decode("deflate", [3, 0]).isEmpty && decode("deflate", [3, 0, 1, 2]).isEmpty, "two bytes are a stream")
    }

    /// Security 49: damaged or cut content is an error, never a crash and never whole.
    @Test("security 49") func damaged() {
        for (coding, input) in [("gzip", Self.codings[0].1), ("deflate", Self.codings[2].1), ("deflate", Self.codings[3].1)] {
            for end in 1..<input.count {
                #expect(violation { _ = try decode(coding, Array(input[..<end])) } == .truncatedContent, "\(coding) \(end)")
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

    @Test("security 48: bombs") func bombs() throws {
        let zeros = [UInt8](repeating: 0, count: 6 << 20)
        let bomb = Self.deflated(zeros, bits: 31)
        #expect(try decode("gzip", bomb, room: 1 << 16).count == zeros.count, "a single layer is honest")
        #expect(violation { _ = try decode("gzip, gzip", Self.deflated(bomb, bits: 31), room: 1 << 16) } == .contentDecodingLimit)
        var limits = ContentDecodingLimits()
        limits.outputSize = 1000
        #expect(violation { _ = try decode("gzip", Self.codings[0].1, limits: limits) } == .contentDecodingLimit)
    }

    @Test("security 48: work that comes to nothing is bounded like content") func hiddenBombs() throws {
        func wrapped(_ inner: [UInt8]) -> [UInt8] { Self.deflated(Self.deflated(Self.deflated(inner, bits: 31), bits: 31), bits: 31) }
        let tiny = Self.deflated([1], bits: 31)
        let padded = tiny + [UInt8](repeating: 0, count: 6 << 20)
        #expect(try decode("gzip", padded).count == 1, "what is on the wire may be padded")
        #expect(violation { _ = try decode("gzip, gzip, gzip, gzip", wrapped(padded)) } == .contentDecodingFailed)
        let empty = Self.deflated([], bits: 31)
        let members = [UInt8]((0..<(6 << 20) / empty.count).map { _ in empty }.joined())
        #expect(violation { _ = try decode("gzip, gzip, gzip, gzip", wrapped(members)) } == .contentDecodingLimit)
    }
}
