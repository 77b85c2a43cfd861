// SPDX-License-Identifier: Apache-2.0

// Removes credentials from URLs in any text.

extension [UInt8] {
    /// The bytes without the text between `//` and `@` of every URL in them (RFC 3986 §3.2). A password may contain
    /// characters that end an authority: if the text before them does not end in a port, the "@" is also searched for
    /// after them. If there is none, that part is removed, because the text may have been cut off.
    package var withoutUserinfo: [UInt8] {
        guard contains(UInt8(ascii: "@")) || contains(UInt8(ascii: ":")) else { return self }
        var result: [UInt8] = []
        var rest = self[...]
        // The end of the URL in which `rest` begins, and its last "@". They are searched for once in each URL, because
        // a server chooses how many "//" it has.
        var urlEnd = -1
        var lastAt = -1
        while let slashes = rest.indices.dropLast().first(where: { rest[$0] == 0x2F && rest[$0 + 1] == 0x2F }) {
            result += rest[...(slashes + 1)]
            rest = rest[(slashes + 2)...]
            if urlEnd < rest.startIndex {
                urlEnd = rest.firstIndex(where: Self.endsURL) ?? rest.endIndex
                lastAt = rest[..<urlEnd].lastIndex(of: UInt8(ascii: "@")) ?? -1
            }
            let authority = rest[..<urlEnd].prefix { !Self.endsAuthority($0) }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                rest = rest[(at + 1)...]
            } else if authority.isCutPassword {
                rest = rest[Swift.max(lastAt + 1, authority.endIndex)...]
            }
        }
        return result + rest
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    private static func endsURL(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">")
    }
}

extension ArraySlice<UInt8> {
    /// True if the text after the authority's colon is not a port.
    fileprivate var isCutPassword: Bool {
        guard let colon = lastIndex(of: UInt8(ascii: ":")), !contains(UInt8(ascii: "]")) else { return false }
        return !self[(colon + 1)...].allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
