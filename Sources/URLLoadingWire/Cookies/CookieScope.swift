// SPDX-License-Identifier: Apache-2.0

// Domain and path matching of cookies (RFC 6265bis §5.1.3, §5.1.4).

package enum CookieScope {
    /// Returns whether `host` equals `domain` or is a subdomain of it. Both are in normal form, without a trailing dot.
    ///
    /// An IP address has no subdomains: an address that ends like another one is unrelated to it.
    package static func matches(domain: String, host: String, hostIsAddress: Bool) -> Bool {
        guard host != domain else { return true }
        guard !hostIsAddress, host.utf8.count > domain.utf8.count, !domain.isEmpty else { return false }
        // The dot keeps `ample.com` from matching `example.com`.
        return host.hasSuffix(domain)
            && host.utf8[host.utf8.index(host.utf8.endIndex, offsetBy: -domain.utf8.count - 1)] == UInt8(ascii: ".")
    }

    /// Returns whether a cookie for `path` is sent with a request for `requestPath`.
    package static func matches(path: String, requestPath: some Collection<UInt8>) -> Bool {
        var rest = requestPath[...]
        for byte in path.utf8 {
            guard rest.popFirst() == byte else { return false }
        }
        return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }

    /// Returns the path of a cookie without a Path attribute: the request's path up to, but not including, its last
    /// slash.
    /// - Parameter target: path and query as in a request line, in ASCII.
    package static func defaultPath(of target: some BidirectionalCollection<UInt8>) -> String {
        let path = path(of: target)
        guard path.first == UInt8(ascii: "/"), let slash = path.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(decoding: path[..<slash], as: UTF8.self)
    }

    /// Returns the request target without its query.
    package static func path<Bytes: Collection<UInt8>>(of target: Bytes) -> Bytes.SubSequence {
        target.prefix { $0 != UInt8(ascii: "?") }
    }
}
