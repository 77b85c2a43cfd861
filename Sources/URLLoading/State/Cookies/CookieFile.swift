// SPDX-License-Identifier: Apache-2.0

// The cookie file format that curl, wget and browser tools read and write.

import FoundationEssentials
import URLLoadingWire

extension CookieStore {
    /// All cookies in the Netscape file format; session cookies have the expiry 0. The format cannot hold SameSite and
    /// the time at which a cookie was set.
    public var netscapeText: String {
        var text = "# Netscape HTTP Cookie File\n"
        for cookie in all {
            guard let line = CookieFileLine(cookie).text else { continue }
            text += line
            text += "\n"
        }
        return text
    }

    /// Sets the cookies of a file in the Netscape format. Invalid lines and expired cookies are skipped.
    /// - Returns: the number of cookies stored.
    @discardableResult
    public func set(netscapeText text: String) -> Int {
        let now = Date.now
        // Only LF ends a line: Unicode's other line ends may occur in a value.
        let cookies = text.utf8.split(separator: UInt8(ascii: "\n"))
            .compactMap { CookieFileLine(Substring($0))?.cookie }.filter { !$0.isExpired(now) }
        return set(cookies, isSecure: true).count
    }
}

extension CookieFileLine {
    fileprivate init(_ cookie: Cookie) {
        self.init(
            domain: cookie.domain, includesSubdomains: !cookie.isHostOnly, path: cookie.path, isSecure: cookie.isSecure,
            isHTTPOnly: cookie.isHTTPOnly,
            expires: cookie.expires.map { max(1, Int64($0.timeIntervalSince1970.rounded(.up))) } ?? 0,
            name: cookie.name, value: cookie.value)
    }

    fileprivate var cookie: Cookie? {
        Cookie(
            name: name, value: value, domain: domain, isHostOnly: !includesSubdomains, path: path,
            expires: expires == 0 ? nil : Date(timeIntervalSince1970: Double(expires)), isSecure: isSecure,
            isHTTPOnly: isHTTPOnly)
    }
}
