// SPDX-License-Identifier: Apache-2.0

/// Searches for the empty line that ends a head or trailer section, and remembers its position: each byte is examined
/// once, however the input is split.
struct HTTP1SectionScanner: Sendable {
    // Offsets from the first unconsumed byte.
    private var scanned = 0
    private var lineStart = 0
    /// The number of lines before the empty one.
    private(set) var lines = 0
    /// Whether an LF alone ends a line. Set when the first one is found where they are tolerated.
    private(set) var acceptsLineFeeds = false

    /// From now on an LF alone ends a line. The search continues at the line in which the last one was refused.
    mutating func acceptLineFeeds() {
        acceptsLineFeeds = true
        scanned = lineStart
    }

    /// Returns the size of the section with its empty line; `nil` if more input is needed.
    ///
    /// A line ended by a bare LF is refused unless ``acceptLineFeeds()`` was called (RFC 9112 §2.2 would permit it): an
    /// intermediary that does not end the line there would see different fields.
    mutating func findEnd(
        in input: UnsafeRawBufferPointer, from base: Int, limit: Int, maxLines: Int, tooLarge: WireViolation.Code
    ) throws(WireViolation) -> Int? {
        let end = base + min(input.count - base, limit)
        var index = input.firstLineFeed(from: base + scanned, to: end)
        while index < end {
            let offset = index - base
            if offset > lineStart, input[index - 1] == .cr {
                if offset == lineStart + 1 { return offset + 1 }
            } else {
                guard acceptsLineFeeds else { throw .remote(.bareLineFeed, at: offset, "RFC 9112 2.2") }
                if offset == lineStart { return offset + 1 }
            }
            lines += 1
            guard lines <= maxLines else { throw .remote(.tooManyFields, at: offset, "RFC 9110 5.4") }
            lineStart = offset + 1
            index = input.firstLineFeed(from: index + 1, to: end)
        }
        guard end - base < limit else { throw .remote(tooLarge, at: limit, "RFC 9110 5.4") }
        scanned = end - base
        return nil
    }
}
