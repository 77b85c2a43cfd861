extension URIReference {
    /// An `http` URI as its server wants it that is spoken to over TLS alone: by `https`, a written port of 80 as 443, all
    /// else as it is (RFC 6797 8.3). `nil` for other schemes.
    package var securingHTTP: URIReference? {
        guard let scheme = parts.scheme, text(scheme).lowercasedASCII == "http", parts.host != nil else { return nil }
        var secured = bytes
        if parts.port == 80, let port = parts.portText { secured.replaceSubrange(port, with: "443".utf8) }
        secured.insert(UInt8(ascii: "s"), at: scheme.upperBound)
        return try? URIReference(bytes: secured)
    }
}
