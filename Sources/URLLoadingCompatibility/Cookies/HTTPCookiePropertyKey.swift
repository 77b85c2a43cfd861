/// What a cookie is made of; see ``HTTPCookie/init(properties:)``.
public struct HTTPCookiePropertyKey: RawRepresentable, Equatable, Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) { self.rawValue = rawValue }
    public init(rawValue: String) { self.rawValue = rawValue }

    /// `String`; needed.
    public static let name = HTTPCookiePropertyKey("Name")
    /// `String`; needed.
    public static let value = HTTPCookiePropertyKey("Value")
    /// `URL` or `String`: whose host is the domain, if there is no ``domain``.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// `String` or a number: 0 or 1.
    public static let version = HTTPCookiePropertyKey("Version")
    /// `String`: one host, or, with a dot in front, what lies below it as well.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// `String`, with a slash in front; needed.
    public static let path = HTTPCookiePropertyKey("Path")
    /// Any string that is not empty, or `true`: over secure connections alone.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// `Date` or a string with a date: when it ends.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// `String`.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// `URL` or `String`.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// `"TRUE"`: it ends with the session, whatever else is said.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// `String` or a number: seconds from now, where there is no ``expires``.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// `String`: numbers with commas between.
    public static let port = HTTPCookiePropertyKey("Port")
    /// One of ``HTTPCookieStringPolicy``.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// As ``secure``: for HTTP alone. Apple has no name for it, and takes it all the same.
    static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
}

/// To whose requests a cookie is added.
public struct HTTPCookieStringPolicy: RawRepresentable, Equatable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
