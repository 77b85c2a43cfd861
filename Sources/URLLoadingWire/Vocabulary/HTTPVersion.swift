// SPDX-License-Identifier: Apache-2.0

/// The HTTP version of a message (RFC 9110 §2.5).
public struct HTTPVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The major version, which determines the message syntax.
    public let major: UInt8
    /// The minor version, which stands for compatible additions.
    public let minor: UInt8

    /// Creates a version from its two numbers.
    public init(major: UInt8, minor: UInt8) {
        self.major = major
        self.minor = minor
    }

    /// HTTP/1.0 (RFC 1945).
    public static let http10 = HTTPVersion(major: 1, minor: 0)
    /// HTTP/1.1 (RFC 9112).
    public static let http11 = HTTPVersion(major: 1, minor: 1)
    /// HTTP/2 (RFC 9113).
    public static let http2 = HTTPVersion(major: 2, minor: 0)
    /// HTTP/3 (RFC 9114).
    public static let http3 = HTTPVersion(major: 3, minor: 0)

    /// Compares by age.
    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    /// The version as in a status line: `HTTP/1.1`; `HTTP/2` and later have no minor part.
    public var description: String { major >= 2 ? "HTTP/\(major)" : "HTTP/\(major).\(minor)" }
}
