// SPDX-License-Identifier: Apache-2.0

public import Foundation
import URLLoading
import URLLoadingWire

/// An HTTP cookie. Immutable.
///
/// ```swift
/// let cookie = HTTPCookie(properties: [.name: "theme", .value: "dark", .domain: "example.org", .path: "/"])
/// if let cookie { HTTPCookieStorage.shared.setCookie(cookie) }
/// ```
/// Two cookies are equal if all their properties are. A cookie returned by a storage has the attributes of RFC 6265bis
/// only: no comment, no ports, version 0.
open class HTTPCookie: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The cookies that an ``HTTPCookieStorage`` accepts from servers.
    public enum AcceptPolicy: UInt, Sendable {
        /// Every cookie that RFC 6265bis permits is accepted.
        case always = 0
        /// No cookie is accepted.
        case never = 1
        /// Only cookies of the site of the main document.
        case onlyFromMainDocumentDomain = 2
    }

    struct Facts: Sendable, Hashable {
        var name: String
        var value: String
        /// The domain, with a leading dot if subdomains are included.
        var domain: String
        var path: String
        var expires: Date?
        var isSecure = false
        var isHTTPOnly = false
        var sameSite: String?
        var version = 0
        var comment: String?
        var commentURL: URL?
        var ports: [Int]?
    }
    final let facts: Facts

    /// Returns `nil` if name, value, path, or both domain and origin URL are missing or no strings, and if a value
    /// contains characters that are invalid in an HTTP field.
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        guard let facts = Facts(properties) else { return nil }
        self.facts = facts
    }

    init(_ cookie: Cookie) {
        facts = Facts(
            name: cookie.name, value: cookie.value, domain: (cookie.isHostOnly ? "" : ".") + cookie.domain,
            path: cookie.path,
            expires: cookie.expires, isSecure: cookie.isSecure, isHTTPOnly: cookie.isHTTPOnly,
            sameSite: cookie.sameSite?.rawValue.lowercased())
    }

    /// The cookie in the core's form; `nil` if a store would not accept it.
    final var core: Cookie? {
        Cookie(
            name: facts.name, value: facts.value, domain: facts.domain, isHostOnly: !facts.domain.hasPrefix("."),
            path: facts.path,
            expires: facts.expires, isSecure: facts.isSecure, isHTTPOnly: facts.isHTTPOnly,
            sameSite: facts.sameSite.flatMap { Cookie.SameSite(rawValue: $0.capitalized) })
    }

    // MARK: Fields

    /// Returns the request field that sends these cookies, in their order; empty without cookies.
    open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        guard !cookies.isEmpty else { return [:] }
        return ["Cookie": cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }.joined(separator: "; ")]
    }

    /// Returns the cookies that a response sets, without those whose domain its sender may not set.
    /// - Parameters:
    ///   - headerFields: the response fields; several `Set-Cookie` values may be joined with commas, each followed by
    ///     an optional line ending.
    ///   - URL: the URL of the response.
    open class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
        var headers = Headers()
        for (name, value) in headerFields where name.lowercased() == "set-cookie" {
            for field in JoinedCookies.split(value) { headers.append(.setCookie, field) }
        }
        // The URL counts as https here: the storage decides whether a secure cookie may be set from the actual URL.
        var parts = URLComponents(url: URL, resolvingAgainstBaseURL: true)
        if parts?.scheme?.lowercased() == "http" { parts?.scheme = "https" }
        return Cookie.cookies(in: headers, from: parts?.url ?? URL).map { HTTPCookie($0) }
    }

    // MARK: Attributes

    /// All properties, suitable for ``init(properties:)`` and for property lists.
    open var properties: [HTTPCookiePropertyKey: Any]? { facts.properties }
    /// The version: 0, or 1 for a cookie of RFC 2965.
    open var version: Int { facts.version }
    /// The name.
    open var name: String { facts.name }
    /// The value.
    open var value: String { facts.value }
    /// The expiry date; `nil` for a session cookie.
    open var expiresDate: Date? { facts.expires }
    /// Whether the cookie expires at the end of the session.
    open var isSessionOnly: Bool { facts.expires == nil }
    /// The domain; with a leading dot it includes subdomains.
    open var domain: String { facts.domain }
    /// The path; the cookie is sent to this path and to the paths below it.
    open var path: String { facts.path }
    /// Whether the cookie is sent over secure connections only.
    open var isSecure: Bool { facts.isSecure }
    /// Whether the cookie is hidden from scripts.
    open var isHTTPOnly: Bool { facts.isHTTPOnly }
    /// The comment of a cookie that was made from properties (RFC 2965); stored cookies have none.
    open var comment: String? { facts.comment }
    /// The URL of the comment; see ``comment``.
    open var commentURL: URL? { facts.commentURL }
    /// The ports to which the cookie is restricted; `nil` for all.
    open var portList: [NSNumber]? { facts.ports.map { $0.map { NSNumber(value: $0) } } }
    /// The SameSite policy, if the cookie states one.
    open var sameSitePolicy: HTTPCookieStringPolicy? { facts.sameSite.map { HTTPCookieStringPolicy(rawValue: $0) } }

    /// A description without the value: `<HTTPCookie theme=… example.org/>`.
    open override var description: String { "<HTTPCookie \(name)=… \(domain)\(path)\(isSecure ? " secure" : "")>" }

    open override func isEqual(_ object: Any?) -> Bool { (object as? HTTPCookie).map { facts == $0.facts } ?? false }
    open override var hash: Int { facts.hashValue }
}

/// Splits several Set-Cookie fields that were joined into one string, as in dictionaries of fields.
enum JoinedCookies {
    /// Returns the individual cookies. A comma separates two cookies if a name and `=` follow it; a comma within a date
    /// is followed by a day. Blanks and line endings may precede the name.
    static func split(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        var parts: [String] = []
        var start = 0
        for place in bytes.indices where bytes[place] == UInt8(ascii: ",") {
            let rest = bytes[(place + 1)...].drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
            guard beginsCookie(rest) else { continue }
            parts.append(String(decoding: bytes[start..<place], as: UTF8.self))
            start = rest.startIndex
        }
        parts.append(String(decoding: bytes[start...], as: UTF8.self))
        return parts
    }

    private static func beginsCookie(_ rest: ArraySlice<UInt8>) -> Bool {
        guard let end = rest.firstIndex(where: { $0 == UInt8(ascii: "=") || !isToken($0) }) else { return false }
        return rest[end] == UInt8(ascii: "=") && end > rest.startIndex
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"()<>@,;:\\\"/[]?={}".utf8.contains(byte)
    }
}
