// SPDX-License-Identifier: Apache-2.0

/// A request method (RFC 9110 §9). Case-sensitive: `get` is not `GET`.
///
/// ```swift
/// let report: Method = "REPORT"
/// Method.get.isSafe              // true
/// ```
public struct Method: RawRepresentable, Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The method as sent.
    public let rawValue: String

    /// Creates a method from any text; one that is not a token is refused when the request is sent.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from any text; one that is not a token is refused when the request is sent.
    public init(_ name: String) { rawValue = name }

    /// Creates a method from a literal. Never traps.
    public init(stringLiteral name: String) { rawValue = name }

    /// RFC 9110 §9.3.1.
    public static let get = Method("GET")
    /// RFC 9110 §9.3.2.
    public static let head = Method("HEAD")
    /// RFC 9110 §9.3.3.
    public static let post = Method("POST")
    /// RFC 9110 §9.3.4.
    public static let put = Method("PUT")
    /// RFC 9110 §9.3.5.
    public static let delete = Method("DELETE")
    /// RFC 9110 §9.3.6.
    public static let connect = Method("CONNECT")
    /// RFC 9110 §9.3.7.
    public static let options = Method("OPTIONS")
    /// RFC 9110 §9.3.8.
    public static let trace = Method("TRACE")
    /// RFC 5789.
    public static let patch = Method("PATCH")
    /// RFC 10008: a request whose content asks the question. Safe and idempotent, as GET.
    public static let query = Method("QUERY")

    /// Whether the method is a token (RFC 9110 §9.1), so that it can be sent.
    public var isValid: Bool {
        self == .get || !rawValue.isEmpty && rawValue.utf8.allSatisfy { ByteSet.token.contains($0) }
    }

    /// Whether the method is read-only (RFC 9110 §9.2.1). Unknown methods are not safe.
    public var isSafe: Bool {
        self == .get || self == .head || self == .options || self == .trace || self == .query
    }

    /// Whether repeating a request has the effect of a single one (RFC 9110 §9.2.2), so that it may be retried.
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

    /// Whether a request without content sends `Content-Length: 0` (RFC 9110 §8.6).
    package var anticipatesContent: Bool {
        // The usual method first: unequal strings are compared slowly.
        self != .get && (self == .post || self == .put || self == .patch || self == .query)
    }

    /// The method as sent.
    public var description: String { rawValue }
}
