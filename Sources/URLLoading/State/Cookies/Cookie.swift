// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

/// A cookie: a name and a value that a server wants returned, and the requests that return it.
///
/// ```swift
/// let cookie = Cookie(name: "theme", value: "dark", domain: "example.org")
/// if let cookie { store.set(cookie) }
/// let received = Cookie.cookies(in: response.http?.headers ?? [:], from: response.url)
/// ```
/// A value, as a store keeps it (RFC 6265bis §5.7). Its description and reflection omit the cookie's value.
public struct Cookie: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name; may be empty if the value is not.
    public let name: String
    /// The value, which descriptions never show.
    public let value: String
    /// The host in normal form, without a dot at either end.
    public let domain: String
    /// Whether the cookie is sent to ``domain`` only, or also to its subdomains.
    public let isHostOnly: Bool
    /// The path prefix of requests that the cookie is sent with; begins with a slash.
    public let path: String
    /// The expiry; `nil` for a session cookie, which is never written to a file.
    public internal(set) var expires: Date?
    /// Whether the cookie is sent over secure connections only.
    public let isSecure: Bool
    /// Whether the cookie is hidden from scripts. A store returns it to its callers, which are not scripts.
    public let isHTTPOnly: Bool
    /// The requests that the cookie is added to; `nil` if the server did not say, which means ``SameSite/lax``.
    public let sameSite: SameSite?
    /// When the cookie was first set.
    public internal(set) var creationDate: Date
    /// When the cookie was last sent or set.
    public internal(set) var lastAccessDate: Date

    /// The requests that a cookie is added to (RFC 6265bis §5.6.7); see ``Request/mainDocumentURL``.
    public enum SameSite: String, Sendable, Hashable {
        /// Same-site requests only.
        case strict = "Strict"
        /// The same as ``strict`` here, since the exception for navigations needs a browser window.
        case lax = "Lax"
        /// All requests. Valid for secure cookies only.
        case none = "None"
    }

    /// A cookie of the caller's own.
    ///
    /// Fails for a cookie that no store accepts: a control character in any part; a `;` in the name, the value or the
    /// path; a `=` in the name; neither name nor value; more than 4096 bytes of both; a domain that is not a host, or
    /// that is a public suffix (`co.uk`) with ``isHostOnly`` false; a path without a leading slash; ``SameSite/none``
    /// without `isSecure`; and a violation of the `__Secure-` or `__Host-` prefix (§4.1.3).
    /// - Parameters:
    ///   - domain: a host; a leading dot is dropped.
    ///   - isHostOnly: always true for an address.
    public init?(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/", expires: Date? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite? = nil
    ) {
        // `URL.host()` returns an IPv6 address without its brackets.
        let domain = domain.utf8.contains(UInt8(ascii: ":")) && !domain.hasPrefix("[") ? "[\(domain)]" : domain
        guard let host = try? Origin.Host(domain.hasPrefix(".") ? String(domain.dropFirst()) : domain),
            path.hasPrefix("/"),
            !(name.isEmpty && value.isEmpty), name.utf8.count + value.utf8.count <= SetCookie.maximumBytes,
            isHostOnly || host.isAddress || !PublicSuffixes.contains(host.cookieDomain),
            name.isCookieText, value.isCookieText, path.isCookieText, !name.utf8.contains(UInt8(ascii: "="))
        else { return nil }
        let now = Date.now
        self.init(
            name: name, value: value, domain: host.cookieDomain, isHostOnly: isHostOnly || host.isAddress, path: path,
            expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, creation: now,
            lastAccess: now)
        guard sameSite != SameSite.none || isSecure, CookieAdmission.keepsPrefix(self, hasRootPath: path == "/") else {
            return nil
        }
    }

    /// Makes a cookie of values that were checked.
    init(
        name: String, value: String, domain: String, isHostOnly: Bool, path: String, expires: Date?, isSecure: Bool,
        isHTTPOnly: Bool, sameSite: SameSite?, creation: Date, lastAccess: Date
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires.map(Self.representable)
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.creationDate = creation
        self.lastAccessDate = lastAccess
    }

    /// Limits a date to 1970 through the year 9999, which files and fields can represent. NaN counts as past.
    private static func representable(_ date: Date) -> Date {
        let seconds = date.timeIntervalSince1970
        return seconds.isNaN
            ? Date(timeIntervalSince1970: 0) : Date(timeIntervalSince1970: min(max(seconds, 0), 253_402_300_799))
    }

    // MARK: Fields

    /// Returns the cookies that a response sets, without those that the rules reject (§5.7).
    /// - Parameter url: the URL of the response.
    public static func cookies(in headers: Headers, from url: URL) -> [Cookie] {
        guard let context = CookieContext(url) else { return [] }
        return CookieAdmission.cookies(in: headers, context, now: Date.now)
    }

    /// Returns the Cookie field of these cookies, in their order; `nil` without cookies.
    public static func field(_ cookies: [Cookie]) -> String? {
        cookies.isEmpty ? nil : cookies.map(\.pair).joined(separator: "; ")
    }

    var pair: String { name.isEmpty ? value : name + "=" + value }

    /// The key of a cookie in a store (§5.7 step 22).
    struct Key: Sendable, Hashable {
        let name: String
        let domain: String
        let isHostOnly: Bool
        let path: String
    }
    var key: Key { Key(name: name, domain: domain, isHostOnly: isHostOnly, path: path) }

    func isExpired(_ now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// `theme=… example.org/ secure httponly`.
    public var description: String {
        "\(name)=… \(isHostOnly ? "" : ".")\(domain)\(path)\(isSecure ? " secure" : "")\(isHTTPOnly ? " httponly" : "")"
            + (sameSite.map { " samesite=\($0.rawValue.lowercased())" } ?? "")
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["name": name, "domain": domain, "path": path]) }
}

extension Origin.Host {
    /// The host as cookies and HSTS name it: without a trailing dot, so that both spellings mean one host.
    var cookieDomain: String { dnsName ?? description }
}

extension String {
    fileprivate var isCookieText: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") } }
}
