public import Foundation
import URLLoading
import URLLoadingWire

/// A cookie, as an object that does not change.
///
/// ```swift
/// let cookie = HTTPCookie(properties: [.name: "theme", .value: "dark", .domain: "example.org", .path: "/"])
/// if let cookie { HTTPCookieStorage.shared.setCookie(cookie) }
/// ```
/// Two are equal if all they say is. What a storage gives back has what RFC 6265bis knows: no comment, no ports, version 0.
open class HTTPCookie: NSObject, @unchecked Sendable {
    /// Which cookies of servers a ``HTTPCookieStorage`` takes.
    public enum AcceptPolicy: UInt, Sendable {
        case always = 0
        case never = 1
        /// Those of the site of the main document alone.
        case onlyFromMainDocumentDomain = 2
    }

    struct Facts: Sendable, Hashable {
        var name: String
        var value: String
        /// With a dot in front if it goes to what lies below it.
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

    /// `nil` if name, value, path, or both domain and origin are missing or no strings, and of what would break a field of
    /// HTTP.
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

    /// As a store keeps it; `nil` if none would.
    final var core: Cookie? {
        Cookie(
            name: facts.name, value: facts.value, domain: facts.domain, isHostOnly: !facts.domain.hasPrefix("."),
            path: facts.path,
            expires: facts.expires, isSecure: facts.isSecure, isHTTPOnly: facts.isHTTPOnly,
            sameSite: facts.sameSite.flatMap { Cookie.SameSite(rawValue: $0.capitalized) })
    }

    // MARK: Fields

    /// The field that sends these cookies, in their order; empty without cookies.
    open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        guard !cookies.isEmpty else { return [:] }
        return ["Cookie": cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }.joined(separator: "; ")]
    }

    /// The cookies that a response sets, without those whose domain is not its sender's to set.
    /// - Parameters:
    ///   - headerFields: several `Set-Cookie` may be joined with commas, also with an end of a line behind each.
    ///   - URL: where the response comes from.
    open class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
        var headers = Headers()
        for (name, value) in headerFields where name.lowercased() == "set-cookie" {
            for field in JoinedCookies.split(value) { headers.append(.setCookie, field) }
        }
        // Whether one that is secure may be set from here, whoever keeps it decides.
        var parts = URLComponents(url: URL, resolvingAgainstBaseURL: true)
        if parts?.scheme?.lowercased() == "http" { parts?.scheme = "https" }
        return Cookie.cookies(in: headers, from: parts?.url ?? URL).map { HTTPCookie($0) }
    }

    // MARK: What it says

    /// All of it, good for ``init(properties:)`` and for property lists.
    open var properties: [HTTPCookiePropertyKey: Any]? { facts.properties }
    /// 0, or 1 for one of RFC 2965.
    open var version: Int { facts.version }
    open var name: String { facts.name }
    open var value: String { facts.value }
    /// When it ends; `nil` for the end of the session.
    open var expiresDate: Date? { facts.expires }
    /// Whether it ends with the session, whatever that is.
    open var isSessionOnly: Bool { facts.expires == nil }
    /// A host; with a dot in front, what lies below it as well.
    open var domain: String { facts.domain }
    /// It goes to this path, and to what lies below it.
    open var path: String { facts.path }
    /// Whether it goes over secure connections alone.
    open var isSecure: Bool { facts.isSecure }
    /// Whether it is for HTTP alone, and not for scripts.
    open var isHTTPOnly: Bool { facts.isHTTPOnly }
    open var comment: String? { facts.comment }
    open var commentURL: URL? { facts.commentURL }
    /// The ports it is meant for; `nil` for all.
    open var portList: [NSNumber]? { facts.ports.map { $0.map { NSNumber(value: $0) } } }
    /// To whose requests it is added, if that was said.
    open var sameSitePolicy: HTTPCookieStringPolicy? { facts.sameSite.map { HTTPCookieStringPolicy(rawValue: $0) } }

    /// Everything but the value: `<HTTPCookie theme=… example.org/>`.
    open override var description: String { "<HTTPCookie \(name)=… \(domain)\(path)\(isSecure ? " secure" : "")>" }

    open override func isEqual(_ object: Any?) -> Bool { (object as? HTTPCookie).map { facts == $0.facts } ?? false }
    open override var hash: Int { facts.hashValue }
}

/// Several Set-Cookie fields in one, as dictionaries have them.
enum JoinedCookies {
    /// A comma ends a cookie if a name and `=` follow it: those within dates are followed by a day. Blanks and ends of lines
    /// may stand between the comma and the name.
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
