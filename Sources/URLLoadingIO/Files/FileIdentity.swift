/// What tells a file from what it was before, at the cost of two reads: size, time of its last change, and
/// a digest of its ends. A change that keeps all three is not noticed; nothing short of reading all of it
/// would.
package struct FileIdentity: Sendable, Hashable {
    package let size: Int64
    /// Nanoseconds since 1970.
    package let modified: Int64
    /// SHA-256 of the first and the last 64 KiB, one after the other, in hexadecimal; of all if that is less.
    package let ends: String

    private static let endSize = 64 * 1024

    /// Reads the ends. Blocks.
    package init(_ reader: FileReader) throws(IOFailure) {
        size = reader.size
        modified = reader.modified
        let first = min(size, Int64(Self.endSize))
        let last = max(first, size - Int64(Self.endSize))
        ends = Digest.hex(try Self.read(reader, 0..<first) + Self.read(reader, last..<size))
    }

    /// As much of the range as there is.
    private static func read(_ reader: FileReader, _ range: Range<Int64>) throws(IOFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.count))
        var done = 0
        while done < bytes.count {
            let result = bytes.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in
                    try reader.read(
                        into: UnsafeMutableRawBufferPointer(rebasing: room[done...]), at: range.lowerBound + Int64(done)
                    )
                }
            }
            let count = try result.get()
            guard count > 0 else { break }
            done += count
        }
        return Array(bytes.prefix(done))
    }
}
