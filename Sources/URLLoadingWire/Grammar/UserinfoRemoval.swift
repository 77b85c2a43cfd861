// What proves who we are in a URL, taken out wherever one stands in a text.

extension [UInt8] {
    /// Without what stands between `//` and `@` of every URL in it (RFC 3986 §3.2).
    package var withoutUserinfo: [UInt8] {
        guard contains(UInt8(ascii: "@")) else { return self }
        var result: [UInt8] = []
        var rest = self[...]
        while let slashes = rest.indices.dropLast().first(where: { rest[$0] == 0x2F && rest[$0 + 1] == 0x2F }) {
            result += rest[...(slashes + 1)]
            rest = rest[(slashes + 2)...]
            let authority = rest.prefix { !Self.endsAuthority.contains($0) }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { rest = rest[(at + 1)...] }
        }
        return result + rest
    }

    private static var endsAuthority: Set<UInt8> { Set("/?# \t\"<>".utf8) }
}
