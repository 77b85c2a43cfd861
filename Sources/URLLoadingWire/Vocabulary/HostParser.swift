// SPDX-License-Identifier: Apache-2.0

// Decides which bytes are a valid host; it does not know URLs. Decodes first, maps to ASCII second and checks last, so
// that the checked name is exactly the one that is used.

enum HostParser {
    static func parse(_ bytes: some RandomAccessCollection<UInt8>) throws(WireViolation) -> Origin.Host.Kind {
        if bytes.first == UInt8(ascii: "[") { return try literal(Array(bytes)) }
        return try name(try lowered(bytes))
    }

    private static var invalid: WireViolation { .local(.invalidHost, "RFC 3986 3.2.2") }

    private static func literal(_ bytes: [UInt8]) throws(WireViolation) -> Origin.Host.Kind {
        guard bytes.count > 2, bytes.last == UInt8(ascii: "]"),
            let (address, zone) = IPv6Text.parse(bytes[1..<bytes.count - 1], zoneMark: "%25")
        else { throw invalid }
        return .ipv6(address, zone: zone)
    }

    /// Returns the bytes without percent escapes and with ASCII letters in lower case.
    private static func lowered(_ bytes: some RandomAccessCollection<UInt8>) throws(WireViolation) -> [UInt8] {
        guard bytes.contains(UInt8(ascii: "%")) else { return bytes.map(\.lowered) }
        guard let decoded = PercentCoding.decode(bytes) else { throw invalid }
        return decoded.map(\.lowered)
    }

    private static func name(_ lowered: [UInt8]) throws(WireViolation) -> Origin.Host.Kind {
        var name = lowered
        if name.contains(where: { $0 >= 0x80 }) {
            name = try mappedToASCII(name)
        } else if hasPunycode(name) {
            try checkPunycode(name)
        }
        // Checked after the mapping, which may turn one Unicode character into "/" or ":".
        guard name.allSatisfy({ ByteSet.hostName.contains($0) }), hasLegalLabels(name) else { throw invalid }
        guard endsInNumber(name) else { return .name(String(decoding: name, as: UTF8.self)) }
        guard let address = IPv4Text.parse(name) else { throw .local(.ambiguousAddress, "RFC 3986 7.4") }
        return .ipv4(address)
    }

    private static func mappedToASCII(_ name: [UInt8]) throws(WireViolation) -> [UInt8] {
        // ASCII is checked here too: a NUL would end the C string, and "/" must not get that far.
        guard name.allSatisfy({ $0 >= 0x80 || ByteSet.hostName.contains($0) }),
            String(validating: name, as: UTF8.self) != nil,
            let mapped = DomainNames.toASCII(name)
        else { throw invalid }
        return mapped
    }

    private static func hasPunycode(_ name: [UInt8]) -> Bool {
        var start = 0
        for index in 0...name.count where index == name.count || name[index] == UInt8(ascii: ".") {
            if index - start > 3, name[start] == UInt8(ascii: "x"), name[start..<index].starts(with: "xn--".utf8) {
                return true
            }
            start = index + 1
        }
        return false
    }

    /// Requires a Punycode label to be what its own Unicode form maps to: otherwise it would be a second spelling of
    /// another name, or hide a character that the mapping forbids.
    private static func checkPunycode(_ name: [UInt8]) throws(WireViolation) {
        for label in name.split(separator: UInt8(ascii: ".")) where label.starts(with: "xn--".utf8) {
            guard label.allSatisfy({ ByteSet.hostName.contains($0) }),
                DomainNames.toASCII(Array(label)) == Array(label)
            else { throw invalid }
        }
    }

    /// Returns whether the labels have legal lengths (RFC 1035 §2.3.4, in text form): 1 to 63 bytes each, 253 in total,
    /// with an optional trailing dot. A hyphen at either end of a label is accepted: such names are in use, and all
    /// parsers read them alike.
    private static func hasLegalLabels(_ name: [UInt8]) -> Bool {
        let count = name.last == UInt8(ascii: ".") ? name.count - 1 : name.count
        guard (1...253).contains(count) else { return false }
        var start = 0
        for index in 0...count where index == count || name[index] == UInt8(ascii: ".") {
            guard (1...63).contains(index - start) else { return false }
            start = index + 1
        }
        return true
    }

    /// Returns whether the last label is a number. Some parsers treat every such name as an address (WHATWG URL 3.5,
    /// curl), so it must be an IPv4 address in its one strict form.
    private static func endsInNumber(_ name: [UInt8]) -> Bool {
        let body = name.last == UInt8(ascii: ".") ? name.dropLast() : name[...]
        let label = body.suffix(from: (body.lastIndex(of: UInt8(ascii: ".")) ?? body.startIndex - 1) + 1)
        if label.allSatisfy(\.isDigit) { return true }
        return label.starts(with: "0x".utf8) && label.dropFirst(2).allSatisfy { $0.hexValue != nil }
    }
}
