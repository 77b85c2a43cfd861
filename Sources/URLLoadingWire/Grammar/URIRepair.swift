// SPDX-License-Identifier: Apache-2.0

/// Repairs a Location value before parsing (RFC 9110 §10.2.2 allows it): percent-encodes spaces, tabs, backslashes,
/// non-ASCII bytes, and a few other characters after the authority, a percent sign that escapes nothing, and number
/// signs within the fragment. Other control characters stay, so that the parser refuses them.
enum URIRepair {
    static func repaired(_ bytes: [UInt8]) -> [UInt8] {
        let start = endOfAuthority(bytes)
        let fragment = bytes[start...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        guard bytes.indices[start...].contains(where: { needsRepair(bytes, $0, fragment) }) else { return bytes }
        var result = Array(bytes[..<start])
        for index in start..<bytes.endIndex {
            if needsRepair(bytes, index, fragment) {
                PercentCoding.append(bytes[index], to: &result)
            } else {
                result.append(bytes[index])
            }
        }
        return result
    }

    private static func needsRepair(_ bytes: [UInt8], _ index: Int, _ fragment: Int) -> Bool {
        switch bytes[index] {
        case UInt8(ascii: "%"):
            index + 2 >= bytes.endIndex || bytes[index + 1].hexValue == nil || bytes[index + 2].hexValue == nil
        case UInt8(ascii: "#"): index > fragment
        // A backslash after the authority names no host; as a slash, which browsers take it for, it could.
        case UInt8(ascii: "\\"), 0x09: true
        case let byte: byte >= 0x80 || ByteSet.repairable.contains(byte)
        }
    }

    /// Returns the end of the authority, which is never changed: a repaired byte there would name another host.
    private static func endOfAuthority(_ bytes: [UInt8]) -> Int {
        var start = bytes.startIndex
        if let mark = bytes.firstIndex(where: { ":/?#".utf8.contains($0) }), bytes[mark] == UInt8(ascii: ":") {
            start = mark + 1
        }
        guard bytes[start...].starts(with: "//".utf8) else { return start }
        return bytes[(start + 2)...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
    }
}
