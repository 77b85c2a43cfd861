// What proves who we are in a URL, taken out wherever one stands in a text.

extension [UInt8] {
    /// Without what stands between `//` and `@` of every URL in it (RFC 3986 §3.2). A password may have characters in it that
    /// end an authority: where what stands before them has no port at its end, the "@" is looked for behind them, too, and
    /// without one that part is left out, since the text may have been cut off.
    package var withoutUserinfo: [UInt8] {
        guard contains(UInt8(ascii: "@")) || contains(UInt8(ascii: ":")) else { return self }
        var result: [UInt8] = []
        var rest = self[...]
        while let slashes = rest.indices.dropLast().first(where: { rest[$0] == 0x2F && rest[$0 + 1] == 0x2F }) {
            result += rest[...(slashes + 1)]
            rest = rest[(slashes + 2)...]
            let url = rest.prefix { !Self.endsURL($0) }
            let authority = url.prefix { !Self.endsAuthority($0) }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                rest = rest[(at + 1)...]
            } else if authority.isCutPassword {
                rest = rest[(url.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? authority.endIndex)...]
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
    /// What follows the colon of an authority is no port.
    fileprivate var isCutPassword: Bool {
        guard let colon = lastIndex(of: UInt8(ascii: ":")), !contains(UInt8(ascii: "]")) else { return false }
        return !self[(colon + 1)...].allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
