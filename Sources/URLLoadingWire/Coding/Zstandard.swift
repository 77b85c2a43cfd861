// SPDX-License-Identifier: Apache-2.0

import URLLoadingCZstd

/// Decodes zstd (RFC 8878) with libzstd: any number of frames, skippable frames between them, and a window of at most 8
/// MiB (RFC 9659 §3).
///
/// After a frame only another frame may follow, even in the outermost coding. gzip has a tradition of padding, zstd has
/// skippable frames for it; and a second frame with a damaged first byte would pass for padding. Unchecked Sendable:
/// belongs to one `ContentDecoder`, which is not copyable.
final class Zstandard: ContentLayer {
    private enum State {
        /// Before or in the header of a frame.
        case header
        case frame
        /// In a skippable frame, with the bytes still to come.
        case skipping(Int)
        case failed
    }

    private var state = State.header
    private var header = ZstandardHeader()
    private var hasFrame = false
    /// Created with the first frame, so that a body that never arrives costs nothing.
    private var context: OpaquePointer?
    /// True if the last call filled the output: more may be pending.
    private var mayHoldOutput = false

    deinit {
        ZSTD_freeDCtx(context)
    }

    var isComplete: Bool {
        guard case .header = state else { return false }
        return hasFrame && header.bytes.isEmpty
    }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        do throws(WireViolation) {
            switch state {
            case .header: return (try readHeader(input), 0)
            case .frame: return try readFrame(input, output)
            case .skipping(let count): return (skip(count, input), 0)
            case .failed: throw Self.failure
            }
        } catch {
            // The library does not define what it does when it is called again after an error.
            state = .failed
            throw error
        }
    }

    private static var failure: WireViolation { .remote(.contentDecodingFailed, "RFC 8878") }

    private func readHeader(_ input: UnsafeRawBufferPointer) throws(WireViolation) -> Int {
        let consumed = try header.take(input)
        guard let kind = header.kind else { return consumed }
        hasFrame = true
        switch kind {
        case .skippable(let count): state = count > 0 ? .skipping(count) : .header
        case .data(let window):
            guard window <= ZstandardHeader.maximumWindow else { throw .remote(.contentDecodingFailed, "RFC 9659 3") }
            try begin()
            state = .frame
        }
        header.reset()
        return consumed
    }

    private func skip(_ count: Int, _ input: UnsafeRawBufferPointer) -> Int {
        let consumed = min(count, input.count)
        state = consumed < count ? .skipping(count - consumed) : .header
        return consumed
    }

    /// Begins a frame with only its header. Given more input, the library might decode a frame in one step and then
    /// accept any window size: what is accepted must not depend on how the body is split.
    private func begin() throws(WireViolation) {
        if context == nil { context = ZSTD_createDCtx() }
        guard let context else { throw Self.failure }
        // A second check: the window's size was checked before the library sees the frame.
        let limited = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZstandardHeader.maximumWindowLog)
        guard ZSTD_isError(limited) == 0 else { throw Self.failure }
        let consumed = try header.bytes.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
            try callLibrary(UnsafeRawBufferPointer(bytes), UnsafeMutableRawBufferPointer(start: nil, count: 0)).consumed
        }
        guard consumed == header.bytes.count else { throw Self.failure }
    }

    private func readFrame(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        // The library reports an error after sixteen calls without progress.
        guard !output.isEmpty, !input.isEmpty || mayHoldOutput else { return (0, 0) }
        let step = try callLibrary(input, output)
        mayHoldOutput = step.produced == output.count
        if step.isEnd { state = .header }
        return (step.consumed, step.produced)
    }

    private func callLibrary(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int, isEnd: Bool) {
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let result = ZSTD_decompressStream(context, &target, &source)
        guard ZSTD_isError(result) == 0 else { throw Self.failure }
        return (source.pos, target.pos, result == 0)
    }
}
