// SPDX-License-Identifier: Apache-2.0

/// A chunk header, `chunk-size [ chunk-ext ] CRLF` (RFC 9112 §7.1).
struct HTTP1ChunkHeader {
    /// Bytes of data that follow; 0 ends the body.
    let size: Int64
    /// Size of the chunk extensions in bytes.
    let extensionSize: Int
    /// Index at which the data begins.
    let end: Int

    /// Parses the header at `base`; `nil` if more input is needed. Each error is detected at the first possible byte,
    /// so that the result does not depend on how the input is split.
    static func parse(
        _ input: UnsafeRawBufferPointer, at base: Int, allowance: Int, role: HTTP1Codec.Role
    ) throws(WireViolation) -> HTTP1ChunkHeader? {
        var index = base
        var value: UInt64 = 0
        while index < input.count, let digit = input[index].hexValue {
            // 16 digits suffice for any size; more are leading zeros or an overflow.
            guard index - base < 16 else { throw .remote(.chunkSizeOverflow, at: index - base, "RFC 9112 7.1") }
            value = value << 4 | UInt64(digit)
            index += 1
        }
        guard index < input.count else { return nil }
        guard index > base else { throw .remote(.malformedChunkSize, at: 0, "RFC 9112 7.1") }
        guard let size = Int64(exactly: value) else { throw .remote(.chunkSizeOverflow, "RFC 9112 7.1") }
        let lineFeed = input.firstLineFeed(from: index, to: min(input.count, index + allowance + 2))
        // Not counting the CR.
        guard lineFeed - index - 1 <= allowance else {
            throw .remote(.chunkExtensionsTooLarge, at: lineFeed - base, "RFC 9112 7.1.1")
        }
        guard lineFeed < input.count else { return nil }
        guard lineFeed > index, input[lineFeed - 1] == .cr else {
            // CVE-2025-22871: some parsers take a bare LF here for the end of the line, others for part of it.
            throw .remote(.bareLineFeed, at: lineFeed - base, "RFC 9112 7.1")
        }
        let extensions = index..<lineFeed - 1
        guard isLegal(input, extensions, role) else {
            throw .remote(.malformedChunkSize, at: index - base, "RFC 9112 7.1.1")
        }
        return HTTP1ChunkHeader(size: size, extensionSize: extensions.count, end: lineFeed + 1)
    }

    /// Returns whether the extensions are legal. They are ignored (as RFC 9112 §7.1.1 requires), but must begin with
    /// ";" and contain no control characters. Blanks alone are accepted from servers: old ones pad the size with them,
    /// and every client accepts that.
    private static func isLegal(_ input: UnsafeRawBufferPointer, _ range: Range<Int>, _ role: HTTP1Codec.Role) -> Bool {
        guard input.firstControl(from: range.lowerBound, to: range.upperBound) == range.upperBound else { return false }
        let rest = input.trimmed(range)
        if rest.isEmpty { return range.isEmpty || role == .client }
        return input[rest.lowerBound] == UInt8(ascii: ";")
    }
}
