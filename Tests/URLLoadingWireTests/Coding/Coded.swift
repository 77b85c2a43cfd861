// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCBrotliEncoder
import URLLoadingCZlib
import URLLoadingCZstd

@testable import URLLoadingWire

/// Content encoded by the C libraries, as servers encode it.
enum Coded {
    /// - Parameter bits: the window bits of zlib: 31 for gzip, 15 for zlib, -15 for raw deflate.
    static func deflated(_ input: [UInt8], bits: CInt) -> [UInt8] {
        var stream = z_stream()
        deflateInit2_(
            &stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
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

    static func brotli(_ input: [UInt8], quality: CInt = 5, window: CInt = 22) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: BrotliEncoderMaxCompressedSize(input.count) + 1000)
        var count = output.count
        let done = BrotliEncoderCompress(quality, window, BROTLI_MODE_GENERIC, input.count, input, &count, &output)
        precondition(done == BROTLI_TRUE)
        return Array(output[..<count])
    }

    /// Encodes one frame. - Parameter sized: true if its header has the size of the content.
    static func zstd(
        _ input: [UInt8], level: CInt = 3, window: CInt = 0, checksum: Bool = true, sized: Bool = true
    ) -> [UInt8] {
        let context = ZSTD_createCCtx()
        defer { ZSTD_freeCCtx(context) }
        for (parameter, value) in [
            (ZSTD_c_compressionLevel, level), (ZSTD_c_windowLog, window), (ZSTD_c_checksumFlag, checksum ? 1 : 0),
            (ZSTD_c_contentSizeFlag, sized ? 1 : 0),
        ] {
            precondition(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0)
        }
        var output = [UInt8](repeating: 0, count: ZSTD_compressBound(input.count))
        let count = ZSTD_compress2(context, &output, output.count, input, input.count)
        precondition(ZSTD_isError(count) == 0)
        return Array(output[..<count])
    }

    /// A skippable frame (RFC 8878 §3.1.2).
    static func skippable(_ content: [UInt8], kind: UInt8 = 0) -> [UInt8] {
        let size = UInt32(content.count)
        return [0x50 + kind, 0x2A, 0x4D, 0x18] + (0..<4).map { UInt8(truncatingIfNeeded: size >> ($0 * 8)) } + content
    }
}

/// Decodes with `pieces` input bytes and `room` output bytes at a time.
func decode(
    _ coding: String, _ input: [UInt8], pieces: Int = .max, room: Int = 4096, limits: ContentDecodingLimits = .init()
) throws -> [UInt8] {
    let cut = stride(from: 0, to: input.count, by: min(pieces, max(1, input.count))).map {
        Array(input[$0...].prefix(pieces))
    }
    return try decode(coding, cut: cut, room: room, limits: limits)
}

func decode(
    _ coding: String, cut pieces: [[UInt8]], room: Int = 4096, limits: ContentDecodingLimits = .init()
) throws -> [UInt8] {
    guard var decoder = try ContentDecoder(contentEncoding: coding, limits: limits) else {
        return Array(pieces.joined())
    }
    var result: [UInt8] = []
    var output = [UInt8](repeating: 0, count: room)
    for piece in pieces {
        var offset = 0
        while true {
            let step = try piece.withUnsafeBufferPointer { (input) throws(WireViolation) in
                try output.withUnsafeMutableBufferPointer { (output) throws(WireViolation) in
                    try decoder.decode(
                        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: input[offset...])),
                        into: UnsafeMutableRawBufferPointer(output))
                }
            }
            result += output[..<step.produced]
            offset += step.consumed
            if step == (0, 0) { break }
        }
        #expect(offset == piece.count)
    }
    try decoder.finish()
    return result
}

enum Outcome: Equatable {
    case content([UInt8])
    case violation(WireViolation.Code?)
}

func outcome(_ coding: String, _ input: [UInt8], pieces: Int = .max, room: Int = 4096) -> Outcome {
    do {
        return .content(try decode(coding, input, pieces: pieces, room: room))
    } catch {
        return .violation((error as? WireViolation)?.code)
    }
}
