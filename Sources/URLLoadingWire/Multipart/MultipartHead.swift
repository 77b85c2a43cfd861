// SPDX-License-Identifier: Apache-2.0

/// Finds the end of a part's fields and parses them (RFC 2046 §5.1; the syntax is that of HTTP).
struct MultipartHeadScanner: Sendable {
    // Offsets from the first unconsumed byte; each byte is examined once, however the input is split.
    private var scanned = 0
    private var lineStart = 0
    private var lines = 0
    private var hasBareLineFeed = false

    /// Returns the fields and the size of the section with its empty line; `nil` if more input is needed.
    mutating func fields(
        in input: UnsafeRawBufferPointer, from base: Int, _ limits: MultipartLimits
    ) throws(WireViolation) -> (headers: Headers, size: Int)? {
        let end = base + min(input.count - base, limits.headSize)
        var index = input.firstLineFeed(from: base + scanned, to: end)
        while index < end {
            let offset = index - base
            let hasReturn = offset > lineStart && input[index - 1] == .cr
            if !hasReturn { hasBareLineFeed = true }
            if offset == (hasReturn ? lineStart + 1 : lineStart) {
                return (try parse(input, base..<base + lineStart), offset + 1)
            }
            lines += 1
            guard lines <= limits.fieldCount else { throw .remote(.tooManyFields, at: offset, "RFC 2046 5.1") }
            lineStart = offset + 1
            index = input.firstLineFeed(from: index + 1, to: end)
        }
        guard end - base < limits.headSize else { throw .remote(.headTooLarge, at: limits.headSize, "RFC 2046 5.1") }
        scanned = end - base
        return nil
    }

    private func parse(_ input: UnsafeRawBufferPointer, _ section: Range<Int>) throws(WireViolation) -> Headers {
        guard hasBareLineFeed else { return try parse(input, section, messageStart: section.lowerBound) }
        let repaired = Self.withReturns(UnsafeRawBufferPointer(rebasing: input[section]))
        return try repaired.withUnsafeBufferPointer { (bytes) throws(WireViolation) in
            try parse(UnsafeRawBufferPointer(bytes), 0..<bytes.count, messageStart: 0)
        }
    }

    /// Parses fields as in a response: folded lines are joined, as MIME requires (RFC 2045 §2.2).
    private func parse(
        _ input: UnsafeRawBufferPointer, _ section: Range<Int>, messageStart: Int
    ) throws(WireViolation) -> Headers {
        try HTTP1FieldParser(input, section: section, lines: lines, role: .client, messageStart: messageStart).headers
    }

    private static func withReturns(_ section: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(section.count + section.count / 16)
        for byte in section {
            if byte == .lf, bytes.last != .cr { bytes.append(.cr) }
            bytes.append(byte)
        }
        return bytes
    }
}
