// SPDX-License-Identifier: Apache-2.0

/// The keys of a cookie's properties; see ``HTTPCookie/init(properties:)``.
public struct HTTPCookiePropertyKey: RawRepresentable, Equatable, Hashable, Sendable {
    public let rawValue: String

    /// Creates a key from its text.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The name: `String`; required.
    public static let name = HTTPCookiePropertyKey("Name")
    /// The value: `String`; required.
    public static let value = HTTPCookiePropertyKey("Value")
    /// The origin: `URL` or `String`. Its host is the domain if there is no ``domain``.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// The version: `String` or a number, 0 or 1.
    public static let version = HTTPCookiePropertyKey("Version")
    /// The domain: `String` with one host, or with a leading dot to include subdomains.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// The path: `String` with a leading slash; required.
    public static let path = HTTPCookiePropertyKey("Path")
    /// Secure connections only: `true` or any non-empty string.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// The expiry date: `Date` or a string with a date.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// The comment: `String`.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// The URL of a comment: `URL` or `String`.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// `"TRUE"` makes it a session cookie, regardless of the other properties.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// The lifetime: `String` or a number, in seconds from now; used if there is no ``expires``.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// The ports: `String` with comma-separated numbers.
    public static let port = HTTPCookiePropertyKey("Port")
    /// The SameSite policy: an ``HTTPCookieStringPolicy``.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// Hidden from scripts: `true` or any non-empty string. Apple has no public constant for this key, but accepts it.
    static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
}

/// The values of the SameSite attribute.
public struct HTTPCookieStringPolicy: RawRepresentable, Equatable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// `SameSite=Lax`.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// `SameSite=Strict`.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
