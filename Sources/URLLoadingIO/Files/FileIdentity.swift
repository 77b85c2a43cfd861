// SPDX-License-Identifier: Apache-2.0

/// Tells one version of a file from another at the cost of two reads: by size, time of the last change, and a digest of
/// both ends. A change that keeps all three goes unnoticed; only reading the whole file would detect it.
package struct FileIdentity: Sendable, Hashable {
    package let size: Int64
    /// Nanoseconds since 1970.
    package let modified: Int64
    /// SHA-256 of the first and the last 64 KiB together, in hexadecimal; of the whole file if it is smaller.
    package let ends: String

    private static let tailSize = 64 * 1024

    /// Reads both ends of the file. Blocks.
    package init(_ reader: FileReader) throws(IOFailure) {
        size = reader.size
        modified = reader.modified
        let first = min(size, Int64(Self.tailSize))
        let last = max(first, size - Int64(Self.tailSize))
        ends = Digest.hex(try reader.bytes(0..<first) + reader.bytes(last..<size))
    }
}
