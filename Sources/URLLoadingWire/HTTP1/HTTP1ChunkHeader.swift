/// `chunk-size [ chunk-ext ] CRLF` (RFC 9112 7.1).
struct HTTP1ChunkHeader {
    /// Bytes of data that follow; 0 ends the body.
    let size: Int64
    /// Bytes of extensions.
    let extensionSize: Int
    /// Where the data begin.
    let end: Int

    /// Parses the header at `base`; `nil` for "need more". Everything is told from the first bytes on,
    /// so that the answer does not depend on how the input is cut.
    static func parse(
        _ input: UnsafeRawBufferPointer, at base: Int, allowance: Int, role: HTTP1Codec.Role
    ) throws(WireViolation) -> HTTP1ChunkHeader? {
        var index = base
        var value: UInt64 = 0
        while index < input.count, let digit = input[index].hexValue {
            // 16 digits are all that can be needed; more are zeros in front or an overflow.
            guard index - base < 16 else { throw .remote(.chunkSizeOverflow, at: index - base, "RFC 9112 7.1") }
            value = value << 4 | UInt64(digit)
            index += 1
        }
        guard index < input.count else { return nil }
        guard index > base else { throw .remote(.malformedChunkSize, at: 0, "RFC 9112 7.1") }
        guard let size = Int64(exactly: value) else { throw .remote(.chunkSizeOverflow, "RFC 9112 7.1") }
        let lineFeed = input.firstLineFeed(from: index, to: min(input.count, index + allowance + 2))
        // Without the CR.
        guard lineFeed - index - 1 <= allowance else {
            throw .remote(.chunkExtensionsTooLarge, at: lineFeed - base, "RFC 9112 7.1.1")
        }
        guard lineFeed < input.count else { return nil }
        guard lineFeed > index, input[lineFeed - 1] == .cr else {
            // CVE-2025-22871: a bare LF here ends the line for some and is part of it for others.
            throw .remote(.bareLineFeed, at: lineFeed - base, "RFC 9112 7.1")
        }
        let extensions = index..<lineFeed - 1
        guard isLegal(input, extensions, role) else {
            throw .remote(.malformedChunkSize, at: index - base, "RFC 9112 7.1.1")
        }
        return HTTP1ChunkHeader(size: size, extensionSize: extensions.count, end: lineFeed + 1)
    }

    /// Extensions are ignored (RFC 9112 7.1.1 asks for that), but begin with ";" and hold no control
    /// characters. Blanks alone after the size are no extension; old servers pad the size with them
    /// and every client lets them.
    private static func isLegal(_ input: UnsafeRawBufferPointer, _ range: Range<Int>, _ role: HTTP1Codec.Role) -> Bool {
        guard input.firstControl(from: range.lowerBound, to: range.upperBound) == range.upperBound else { return false }
        let rest = input.trimmed(range)
        if rest.isEmpty { return range.isEmpty || role == .client }
        return input[rest.lowerBound] == UInt8(ascii: ";")
    }
}
