// SPDX-License-Identifier: Apache-2.0

extension URIReference {
    /// An `http` URI upgraded for a host with an HSTS policy: scheme `https`, an explicit port of 80 replaced by 443,
    /// everything else unchanged (RFC 6797 §8.3). `nil` for other schemes.
    package var securingHTTP: URIReference? {
        guard let scheme = parts.scheme, text(scheme).lowercasedASCII == "http", parts.host != nil else { return nil }
        var secured = bytes
        if parts.port == 80, let port = parts.portText { secured.replaceSubrange(port, with: "443".utf8) }
        secured.insert(UInt8(ascii: "s"), at: scheme.upperBound)
        return try? URIReference(bytes: secured)
    }
}
