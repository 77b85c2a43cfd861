// SPDX-License-Identifier: Apache-2.0

/// Repairs a Location value as browsers do before parsing: percent-encodes spaces, non-ASCII bytes and a few harmless
/// characters after the authority. Backslashes and control characters stay, so that the parser refuses them.
enum URIRepair {
    static func repaired(_ bytes: [UInt8]) -> [UInt8] {
        let start = endOfAuthority(bytes)
        guard bytes[start...].contains(where: { needsRepair($0) }) else { return bytes }
        var result = Array(bytes[..<start])
        for byte in bytes[start...] {
            if needsRepair(byte) { PercentCoding.append(byte, to: &result) } else { result.append(byte) }
        }
        return result
    }

    private static func needsRepair(_ byte: UInt8) -> Bool {
        byte >= 0x80 || ByteSet.repairable.contains(byte)
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
