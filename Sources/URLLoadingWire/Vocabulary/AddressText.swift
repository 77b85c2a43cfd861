// SPDX-License-Identifier: Apache-2.0

/// Parses ports: digits only, where `UInt16` would accept a sign.
package enum PortText {
    package static func number(_ text: some StringProtocol) -> UInt16? {
        text.utf8.allSatisfy(\.isDigit) ? UInt16(text) : nil
    }
}

/// Dotted-decimal text of IPv4 addresses (RFC 3986 §3.2.2): four decimals, no leading zeros, no octal.
enum IPv4Text {
    static func parse(_ text: some Collection<UInt8>) -> [UInt8]? {
        var address: UInt32 = 0
        var octet = 0
        var digits = 0
        var dots = 0
        for byte in text {
            if byte == UInt8(ascii: ".") {
                guard digits > 0, dots < 3 else { return nil }
                address = address << 8 | UInt32(octet)
                (octet, digits, dots) = (0, 0, dots + 1)
            } else {
                // No digit may follow a leading zero.
                guard byte.isDigit, digits == 0 || octet > 0 else { return nil }
                octet = octet * 10 + Int(byte &- 0x30)
                digits += 1
                guard octet <= 255 else { return nil }
            }
        }
        guard dots == 3, digits > 0 else { return nil }
        address = address << 8 | UInt32(octet)
        return [UInt8(address >> 24), UInt8(address >> 16 & 0xFF), UInt8(address >> 8 & 0xFF), UInt8(address & 0xFF)]
    }

    static func format(_ bytes: some Collection<UInt8>) -> String {
        // At most "255." for each byte: short enough for a small string.
        String(unsafeUninitializedCapacity: 4 * bytes.count) { room in
            var count = 0
            for byte in bytes {
                if count > 0 { (room[count], count) = (UInt8(ascii: "."), count + 1) }
                if byte >= 100 { (room[count], count) = (0x30 + byte / 100, count + 1) }
                if byte >= 10 { (room[count], count) = (0x30 + byte / 10 % 10, count + 1) }
                (room[count], count) = (0x30 + byte % 10, count + 1)
            }
            return count
        }
    }
}

/// Text of IPv6 addresses: parsed by RFC 4291 §2.2, written as RFC 5952 recommends.
enum IPv6Text {
    /// Parses an address. `zoneMark` is the text that precedes a zone: `%25` in a URL (RFC 6874).
    static func parse(_ text: ArraySlice<UInt8>, zoneMark: String) -> (bytes: [UInt8], zone: String?)? {
        guard let mark = text.firstIndex(of: UInt8(ascii: "%")) else {
            return address(text).map { ($0, nil) }
        }
        guard text[mark...].starts(with: zoneMark.utf8),
            let decoded = PercentCoding.decode(text[(mark + zoneMark.utf8.count)...]),
            let zone = String(validating: decoded, as: UTF8.self), isLegalZone(zone),
            let bytes = address(text[..<mark])
        else { return nil }
        return (bytes, zone)
    }

    /// Returns whether a zone is printable ASCII and no longer than IF_NAMESIZE: an interface name or number.
    static func isLegalZone(_ zone: String) -> Bool {
        (1...15).contains(zone.utf8.count)
            && zone.utf8.allSatisfy { ByteSet.visible.contains($0) && $0 != UInt8(ascii: "/") }
    }

    static func encodeZone(_ zone: String) -> String {
        var bytes: [UInt8] = []
        for byte in zone.utf8 {
            if ByteSet.unreserved.contains(byte) { bytes.append(byte) } else { PercentCoding.append(byte, to: &bytes) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func address(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard let gap = doubleColon(in: text) else {
            let all = groups(text, mayEndInIPv4: true)
            return all?.count == 16 ? all : nil
        }
        guard let head = groups(text[..<gap], mayEndInIPv4: false),
            let tail = groups(text[(gap + 2)...], mayEndInIPv4: true), head.count + tail.count <= 14
        else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    private static func doubleColon(in text: ArraySlice<UInt8>) -> Int? {
        text.indices.dropLast().first { text[$0] == UInt8(ascii: ":") && text[$0 + 1] == UInt8(ascii: ":") }
    }

    private static func groups(_ text: ArraySlice<UInt8>, mayEndInIPv4: Bool) -> [UInt8]? {
        if text.isEmpty { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (number, part) in parts.enumerated() {
            if mayEndInIPv4, number == parts.count - 1, let quad = IPv4Text.parse(part) {
                bytes += quad
                continue
            }
            guard (1...4).contains(part.count), part.allSatisfy({ $0.hexValue != nil }) else { return nil }
            let value = part.reduce(UInt16(0)) { $0 << 4 | UInt16($1.hexValue ?? 0) }
            bytes += [UInt8(value >> 8), UInt8(value & 0xFF)]
        }
        return bytes
    }

    static func format(_ bytes: [UInt8]) -> String {
        guard bytes.count == 16 else { return "" }
        // RFC 5952 §5: mixed notation for IPv4-mapped addresses.
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return "::ffff:" + IPv4Text.format(bytes[12...])
        }
        let words = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        let gap = longestZeros(words)
        guard gap.count > 1 else { return hex(words[...]) }
        return hex(words[..<gap.lowerBound]) + "::" + hex(words[gap.upperBound...])
    }

    /// Returns the longest run of zeros, the first one of equal runs (RFC 5952 §4.2.3).
    private static func longestZeros(_ words: [UInt16]) -> Range<Int> {
        var best = 0..<0
        var start = 0
        for index in words.indices {
            if words[index] != 0 {
                start = index + 1
            } else if index + 1 - start > best.count {
                best = start..<index + 1
            }
        }
        return best
    }

    private static func hex(_ words: ArraySlice<UInt16>) -> String {
        words.map { String($0, radix: 16) }.joined(separator: ":")
    }
}
