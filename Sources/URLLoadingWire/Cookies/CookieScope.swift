// Where a cookie belongs: domains and paths held against each other (RFC 6265bis §5.1.3, §5.1.4).

package enum CookieScope {
    /// Whether a host is a domain, or lies below it. Both are in normal form, without a dot at the end.
    ///
    /// An address lies below nothing (security 22): one that ends like another has nothing in common with it.
    package static func matches(domain: String, host: String, hostIsAddress: Bool) -> Bool {
        guard host != domain else { return true }
        guard !hostIsAddress, host.utf8.count > domain.utf8.count, !domain.isEmpty else { return false }
        // The dot keeps `ample.com` away from `example.com` (security 23).
        return host.hasSuffix(domain)
            && host.utf8[host.utf8.index(host.utf8.endIndex, offsetBy: -domain.utf8.count - 1)] == UInt8(ascii: ".")
    }

    /// Whether a cookie for `path` goes to `requestPath`.
    package static func matches(path: String, requestPath: some Collection<UInt8>) -> Bool {
        var rest = requestPath[...]
        for byte in path.utf8 {
            guard rest.popFirst() == byte else { return false }
        }
        return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }

    /// The path of a cookie that says none: the request's up to its last slash, without it.
    /// - Parameter target: path and query, as in a request line: ASCII.
    package static func defaultPath(of target: some BidirectionalCollection<UInt8>) -> String {
        let path = path(of: target)
        guard path.first == UInt8(ascii: "/"), let slash = path.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(decoding: path[..<slash], as: UTF8.self)
    }

    /// Without the query.
    package static func path<Bytes: Collection<UInt8>>(of target: Bytes) -> Bytes.SubSequence {
        target.prefix { $0 != UInt8(ascii: "?") }
    }
}
