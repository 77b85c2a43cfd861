// The file format that curl, wget and browsers' tools read and write.

import FoundationEssentials
import URLLoadingWire

extension CookieStore {
    /// All cookies in the format of the Netscape browser, those of the session with an end of 0. What it cannot hold is
    /// lost: SameSite, and when a cookie was set.
    public var netscapeText: String {
        var text = "# Netscape HTTP Cookie File\n"
        for cookie in all {
            guard let line = CookieFileLine(cookie).text else { continue }
            text += line
            text += "\n"
        }
        return text
    }

    /// Sets the cookies of a file in that format. What is no cookie in it is passed over, and so is what has ended.
    /// - Returns: how many were kept.
    @discardableResult
    public func set(netscapeText text: String) -> Int {
        let now = Date.now
        // LF alone ends a line: Unicode's other ends of lines may be in a value.
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
