// SPDX-License-Identifier: Apache-2.0

// Splits bytes into frames by their lengths. The only limit is that of the format, 16 MiB.

package struct HTTP2FrameReader: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0

    package init() {}

    /// The bytes received that are not a complete frame yet.
    package var unread: ArraySlice<UInt8> { bytes[start...] }

    package mutating func receive(_ new: some Sequence<UInt8>) { bytes.append(contentsOf: new) }

    /// Consumes bytes that are not a frame, such as the preface; `nil` while there are fewer than `count`.
    package mutating func take(_ count: Int) -> [UInt8]? {
        guard bytes.count - start >= count else { return nil }
        defer { advance(by: count) }
        return Array(bytes[start..<start + count])
    }

    /// Returns the next frame; `nil` while it is incomplete.
    package mutating func next() -> HTTP2Frame? {
        guard bytes.count - start >= 9 else { return nil }
        let head = bytes[start..<start + 9].map { Int($0) }
        let length = head[0] << 16 | head[1] << 8 | head[2]
        guard bytes.count - start >= 9 + length else { return nil }
        defer { advance(by: 9 + length) }
        var frame = HTTP2Frame(
            .init(rawValue: bytes[start + 3]), flags: .init(rawValue: bytes[start + 4]),
            stream: (head[5] & 0x7F) << 24 | head[6] << 16 | head[7] << 8 | head[8],
            payload: Array(bytes[(start + 9)..<(start + 9 + length)]))
        frame.reservedBit = head[5] & 0x80 != 0
        return frame
    }

    private mutating func advance(by count: Int) {
        start += count
        // The rest is moved only when most of the bytes are consumed, so that the cost per byte stays small.
        guard start == bytes.count || start > 64 * 1024 else { return }
        bytes.removeSubrange(..<start)
        start = 0
    }
}
