public import FoundationEssentials
public import URLLoadingWire

/// What a server wants to be told again: a name and a value, and to whom they go.
///
/// ```swift
/// let cookie = Cookie(name: "theme", value: "dark", domain: "example.org")
/// if let cookie { store.set(cookie) }
/// let received = Cookie.cookies(in: response.http?.headers ?? [:], from: response.url)
/// ```
/// A value, as a store keeps it (RFC 6265bis §5.7). What it says of itself shows everything but the value.
public struct Cookie: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// May be empty, if the value is not.
    public let name: String
    public let value: String
    /// A host in normal form, without a dot at either end.
    public let domain: String
    /// Whether it goes to ``domain`` alone, or to what lies below it as well.
    public let isHostOnly: Bool
    /// Begins with a slash. It goes to this path and to what lies below it.
    public let path: String
    /// When it ends; `nil` for the end of the session: such a cookie is never in a file.
    public internal(set) var expires: Date?
    /// Whether it goes over secure connections alone.
    public let isSecure: Bool
    /// Whether it is for HTTP alone, and not for scripts. A store shows it to its callers all the same: they are no scripts.
    public let isHTTPOnly: Bool
    /// To whose requests it is added; `nil` if nothing was said, which is ``SameSite/lax``.
    public let sameSite: SameSite?
    /// When it was first set.
    public internal(set) var creationDate: Date
    /// When it was last sent, or set.
    public internal(set) var lastAccessDate: Date

    /// To whose requests a cookie is added (RFC 6265bis §5.6.7): see ``Request/mainDocumentURL``.
    public enum SameSite: String, Sendable, Hashable {
        /// Only to those of its own site.
        case strict = "Strict"
        /// The same for all but navigations, which a client without windows does not make.
        case lax = "Lax"
        /// To all. Only a secure cookie may say so.
        case none = "None"
    }

    /// A cookie of the caller's own.
    ///
    /// `nil` for what no store would take: a control character anywhere, a `;` in the name, the value or the path, a `=` in
    /// the name, neither name nor value, more than 4096 bytes of both, a domain that is no host,
    /// or, with its subdomains, belongs to nobody (`co.uk`), a path without a slash,
    /// ``SameSite/none`` that is not secure, and what `__Secure-` and `__Host-` forbid (§4.1.3).
    /// - Parameters:
    ///   - domain: a host; a dot in front is left out.
    ///   - isHostOnly: for an address always true.
    public init?(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/", expires: Date? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite? = nil
    ) {
        // `URL.host()` has an address of version 6 without its brackets.
        let domain = domain.utf8.contains(UInt8(ascii: ":")) && !domain.hasPrefix("[") ? "[\(domain)]" : domain
        guard let host = try? Origin.Host(domain.hasPrefix(".") ? String(domain.dropFirst()) : domain),
            path.hasPrefix("/"),
            !(name.isEmpty && value.isEmpty), name.utf8.count + value.utf8.count <= SetCookie.mostBytes,
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

    /// Of what was checked.
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

    /// Between 1970 and the last second of the year 9999, which files and fields can say. What is no moment has passed.
    private static func representable(_ date: Date) -> Date {
        let seconds = date.timeIntervalSince1970
        return seconds.isNaN
            ? Date(timeIntervalSince1970: 0) : Date(timeIntervalSince1970: min(max(seconds, 0), 253_402_300_799))
    }

    // MARK: Fields

    /// The cookies that an answer sets, without those that it must not set, or not so (§5.7).
    /// - Parameter url: where the answer comes from.
    public static func cookies(in headers: Headers, from url: URL) -> [Cookie] {
        guard let context = CookieContext(url) else { return [] }
        return CookieAdmission.cookies(in: headers, context, now: Date.now)
    }

    /// The Cookie field of these cookies, in their order; `nil` of none.
    public static func field(_ cookies: [Cookie]) -> String? {
        cookies.isEmpty ? nil : cookies.map(\.pair).joined(separator: "; ")
    }

    var pair: String { name.isEmpty ? value : name + "=" + value }

    /// What tells it from others (§5.7 step 22).
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
    /// As cookies and the rules of HSTS name it: without the dot at the end, so that both spellings mean one host.
    var cookieDomain: String { dnsName ?? description }
}

extension String {
    fileprivate var isCookieText: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") } }
}
