/// Looks for the empty line that ends a head or a trailer section, and remembers how far it came:
/// however the bytes are cut, each is looked at once.
struct HTTP1SectionScanner: Sendable {
    // Offsets from the first unconsumed byte.
    private var scanned = 0
    private var lineStart = 0
    /// Lines before the empty one.
    private(set) var lines = 0

    /// The size of the section with its empty line; `nil` for "need more".
    ///
    /// A line ended by LF alone is refused here already (RFC 9112 2.2 would let us accept it): a
    /// reader before us that does not end the line there sees other fields than we do.
    mutating func findEnd(
        in input: UnsafeRawBufferPointer, from base: Int, limit: Int, maxLines: Int, tooLarge: WireViolation.Code
    ) throws(WireViolation) -> Int? {
        let end = base + min(input.count - base, limit)
        var index = input.firstLineFeed(from: base + scanned, to: end)
        while index < end {
            let offset = index - base
            guard offset > lineStart, input[index - 1] == .cr else {
                throw .remote(.bareLineFeed, at: offset, "RFC 9112 2.2")
            }
            if offset == lineStart + 1 { return offset + 1 }
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
