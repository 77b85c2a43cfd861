// SPDX-License-Identifier: Apache-2.0

import URLLoadingCZlib

/// Decodes gzip (RFC 1952) and deflate (RFC 1950, or RFC 1951 without the wrapper, which some servers send under that
/// name) with zlib.
///
/// Unchecked Sendable: belongs to one `ContentDecoder`, which is not copyable.
final class Inflate: ContentLayer {
    enum Format {
        case gzip
        case deflate
    }

    private enum State {
        /// Before the first byte, or while collecting the two bytes that distinguish zlib from raw deflate.
        case start
        case running
        /// At the end of a gzip member: another one may follow (RFC 1952 §2.2).
        case betweenMembers
        /// At the end of the content; further input is ignored.
        case ended
    }

    private let format: Format
    private let toleratesPadding: Bool
    /// Allocated separately because zlib keeps a pointer to it, so it must not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isInitialized = false
    private var state = State.start
    private var prefix: [UInt8] = []

    init(_ format: Format, toleratesPadding: Bool = true) {
        self.format = format
        self.toleratesPadding = toleratesPadding
        stream.initialize(to: z_stream())
    }

    deinit {
        if isInitialized { inflateEnd(stream) }
        stream.deallocate()
    }

    var isComplete: Bool {
        state == .betweenMembers || state == .ended
    }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        switch state {
        case .start: return try start(input, output)
        case .running: return try inflate(input, output)
        case .betweenMembers: return try nextMember(input, output)
        case .ended: return (try skipPadding(input, tolerated: toleratesPadding), 0)
        }
    }

    private static func failure(_ section: String) -> WireViolation { .remote(.contentDecodingFailed, section) }

    private func start(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        guard !input.isEmpty else { return (0, 0) }
        guard format == .deflate else {
            try initialize(windowBits: MAX_WBITS + 16)
            return try inflate(input, output)
        }
        let taken = input.prefix(2 - prefix.count)
        prefix += taken
        if prefix.count == 2 { try initialize(windowBits: isWrapped ? MAX_WBITS : -MAX_WBITS) }
        return (taken.count, 0)
    }

    /// Whether the first two bytes are a zlib header (RFC 1950 §2.2): method 8, a window up to 32 KiB, and a check that
    /// makes them a multiple of 31.
    private var isWrapped: Bool {
        prefix[0] & 0x0F == 8 && prefix[0] >> 4 <= 7 && (Int(prefix[0]) << 8 | Int(prefix[1])) % 31 == 0
    }

    private func initialize(windowBits: CInt) throws(WireViolation) {
        let size = CInt(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, windowBits, ZLIB_VERSION, size) == Z_OK else { throw Self.failure("RFC 1951") }
        isInitialized = true
        state = .running
    }

    private func inflate(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        var produced = 0
        if !prefix.isEmpty {
            let held = prefix
            let before = held.count
            let step = try held.withUnsafeBufferPointer { (held) throws(WireViolation) in
                try callZlib(UnsafeRawBufferPointer(held), output)
            }
            prefix.removeFirst(min(step.consumed, before))
            produced = step.produced
            // Two bytes can be a complete raw stream; the rest is then padding.
            if state == .ended { return (try skipPadding(input, tolerated: toleratesPadding), produced) }
            guard prefix.isEmpty else { return (0, produced) }
        }
        let rest = UnsafeMutableRawBufferPointer(rebasing: output[produced...])
        let step = try callZlib(input, rest)
        return (step.consumed, produced + step.produced)
    }

    private func callZlib(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        // zlib refuses null pointers even with nothing to read or write.
        var nothing: (UInt8, UInt8) = (0, 0)
        let room = min(output.count, Int(CUnsignedInt.max))
        let given = min(input.count, Int(CUnsignedInt.max))
        let result = withUnsafeMutablePointer(to: &nothing.0) { nothing in
            stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(nothing))
            stream.pointee.avail_in = CUnsignedInt(given)
            stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nothing
            stream.pointee.avail_out = CUnsignedInt(room)
            return URLLoadingCZlib.inflate(stream, Z_NO_FLUSH)
        }
        let step = (
            consumed: given - Int(stream.pointee.avail_in), produced: room - Int(stream.pointee.avail_out)
        )
        switch result {
        case Z_OK, Z_BUF_ERROR: break  // Z_BUF_ERROR: no progress was possible; more input or output space is needed.
        case Z_STREAM_END: state = format == .gzip ? .betweenMembers : .ended
        default: throw Self.failure(format == .gzip ? "RFC 1952" : "RFC 1950")
        }
        return step
    }

    /// Continues after a gzip member: with another member, or with padding, which every decoder ignores because the
    /// content before it is complete and its checksum was right.
    private func nextMember(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        guard let first = input.first else { return (0, 0) }
        guard first == 0x1F else {
            state = .ended
            return (try skipPadding(input, tolerated: toleratesPadding), 0)
        }
        guard inflateReset(stream) == Z_OK else { throw Self.failure("RFC 1952") }
        state = .running
        return try inflate(input, output)
    }
}
