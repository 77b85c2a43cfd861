// SPDX-License-Identifier: Apache-2.0

// In this folder: URLs, hosts and the fields that have a grammar of their own (25 files: one grammar each)

/// Parses RFC 3986 Appendix A. The first pass splits the text, the second checks every character.
enum URIParser {
    static func parse(_ bytes: [UInt8]) throws(WireViolation) -> URIParts {
        // Check the whole text first, so that no later step meets these characters.
        if let bad = bytes.firstIndex(where: { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }) {
            let inAuthority = bytes[bad] == UInt8(ascii: "\\") && isInAuthority(bad, of: bytes)
            throw .local(inAuthority ? .ambiguousAuthority : .invalidURL, at: bad, "RFC 3986 2")
        }
        var parts = cut(bytes)
        try check(&parts, bytes)
        return parts
    }

    private static func isInAuthority(_ index: Int, of bytes: [UInt8]) -> Bool {
        cut(bytes).host.map { index < $0.upperBound } ?? false
    }

    // MARK: Splitting (RFC 3986 Appendix B)

    private static func cut(_ bytes: [UInt8]) -> URIParts {
        var parts = URIParts()
        var rest = bytes.startIndex..<bytes.endIndex
        if let mark = bytes.firstIndex(of: UInt8(ascii: "#")) {
            parts.fragment = mark + 1..<rest.upperBound
            rest = rest.lowerBound..<mark
        }
        if let mark = bytes[rest].firstIndex(of: UInt8(ascii: "?")) {
            parts.query = mark + 1..<rest.upperBound
            rest = rest.lowerBound..<mark
        }
        if let mark = bytes[rest].firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }),
            bytes[mark] == UInt8(ascii: ":")
        {
            parts.scheme = rest.lowerBound..<mark
            rest = mark + 1..<rest.upperBound
        }
        if bytes[rest].starts(with: "//".utf8) {
            let start = rest.lowerBound + 2
            let end = bytes[start..<rest.upperBound].firstIndex(of: UInt8(ascii: "/")) ?? rest.upperBound
            cutAuthority(start..<end, bytes, &parts)
            rest = end..<rest.upperBound
        }
        parts.path = rest
        return parts
    }

    private static func cutAuthority(_ range: Range<Int>, _ bytes: [UInt8], _ parts: inout URIParts) {
        var host = range
        // The last "@", as in all careful parsers; an earlier one is refused below.
        if let mark = bytes[range].lastIndex(of: UInt8(ascii: "@")) {
            parts.userinfo = range.lowerBound..<mark
            host = mark + 1..<range.upperBound
        }
        let bracket = bytes[host].lastIndex(of: UInt8(ascii: "]")) ?? host.lowerBound
        if let mark = bytes[bracket..<host.upperBound].firstIndex(of: UInt8(ascii: ":")) {
            parts.portText = mark + 1..<host.upperBound
            host = host.lowerBound..<mark
        }
        parts.host = host
    }

    // MARK: Checking

    private static func check(_ parts: inout URIParts, _ bytes: [UInt8]) throws(WireViolation) {
        if let scheme = parts.scheme {
            guard let first = bytes[scheme].first, first.isAlpha else {
                throw .local(.invalidURL, at: scheme.lowerBound, "RFC 3986 3.1")
            }
            try check(bytes, scheme, .scheme, "RFC 3986 3.1")
        }
        if let userinfo = parts.userinfo { try checkUserinfo(bytes, userinfo) }
        if let host = parts.host { try checkHost(bytes, host) }
        if let digits = parts.portText { parts.port = try port(bytes, digits) }
        try check(bytes, parts.path, .path, "RFC 3986 3.3")
        if let query = parts.query { try check(bytes, query, .query, "RFC 3986 3.4") }
        if let fragment = parts.fragment { try check(bytes, fragment, .query, "RFC 3986 3.5") }
    }

    private static func check(
        _ bytes: [UInt8], _ range: Range<Int>, _ allowed: ByteSet, _ section: String
    ) throws(WireViolation) {
        for index in range {
            guard allowed.contains(bytes[index]) else { throw .local(.invalidURL, at: index, section) }
            guard bytes[index] == UInt8(ascii: "%") else { continue }
            guard index + 2 < range.upperBound, bytes[index + 1].hexValue != nil, bytes[index + 2].hexValue != nil
            else { throw .local(.invalidURL, at: index, "RFC 3986 2.1") }
        }
    }

    /// Refuses two ambiguous forms. `http://a\@b/` arrives as `a%5C@b` and means host `a` to some parsers, `b` to
    /// others; a second "@" once made a client resolve half a password as a host name.
    private static func checkUserinfo(_ bytes: [UInt8], _ range: Range<Int>) throws(WireViolation) {
        if let mark = bytes[range].firstIndex(of: UInt8(ascii: "@")) {
            throw .local(.ambiguousAuthority, at: mark, "RFC 3986 3.2.1")
        }
        try check(bytes, range, .userinfo, "RFC 3986 3.2.1")
        for index in range where bytes[index] == UInt8(ascii: "%") {
            let value = (bytes[index + 1].hexValue ?? 0) << 4 | (bytes[index + 2].hexValue ?? 0)
            if value == UInt8(ascii: "\\") { throw .local(.ambiguousAuthority, at: index, "RFC 3986 7.6") }
        }
    }

    /// Checks the characters of a host. `Origin.Host` checks the inside of brackets, and non-ASCII characters, which
    /// IDNA maps.
    private static func checkHost(_ bytes: [UInt8], _ range: Range<Int>) throws(WireViolation) {
        let isLiteral = bytes[range].first == UInt8(ascii: "[") && bytes[range].last == UInt8(ascii: "]")
        guard String(validating: bytes[range], as: UTF8.self) != nil else {
            throw .local(.invalidHost, at: range.lowerBound, "RFC 3986 3.2.2")
        }
        let inner = isLiteral ? range.dropFirst().dropLast() : range[...]
        for index in inner {
            let byte = bytes[index]
            let isLegal = byte >= 0x80 || ByteSet.registeredName.contains(byte)
            guard isLegal || (isLiteral && byte == UInt8(ascii: ":")) else {
                throw .local(.invalidHost, at: index, "RFC 3986 3.2.2")
            }
        }
    }

    private static func port(_ bytes: [UInt8], _ range: Range<Int>) throws(WireViolation) -> UInt16? {
        if range.isEmpty { return nil }
        var value = 0
        for index in range {
            guard bytes[index].isDigit else { throw .local(.invalidPort, at: index, "RFC 3986 3.2.3") }
            value = value * 10 + Int(bytes[index] &- 0x30)
            guard value <= 65535 else { throw .local(.invalidPort, at: index, "RFC 3986 3.2.3") }
        }
        return UInt16(value)
    }
}
