// SPDX-License-Identifier: Apache-2.0

/// An origin: scheme, host and port (RFC 6454 §4).
///
/// ```swift
/// let origin = try Origin(scheme: "HTTPS", host: Origin.Host("example.com"))
/// origin.description   // "https://example.com"
/// origin.port          // 443
/// ```
public struct Origin: Sendable, Hashable, CustomStringConvertible {
    /// The scheme, in lower case.
    public let scheme: String
    /// The host, in normal form.
    public let host: Host
    /// The port, explicit or the scheme's default.
    public let port: UInt16

    /// Creates an origin. Without `port` the scheme must have a known default: `http`, `https`, `ws`, `wss`, `ftp` or
    /// `ftps`; otherwise throws `unsupportedScheme`. Throws `invalidURL` if the scheme is not a legal one.
    public init(scheme: String, host: Host, port: UInt16? = nil) throws(WireViolation) {
        let lowered = scheme.lowercasedASCII
        guard let first = lowered.utf8.first, first.isAlpha, lowered.utf8.allSatisfy({ ByteSet.scheme.contains($0) })
        else { throw .local(.invalidURL, "RFC 3986 3.1") }
        guard let port = port ?? Self.defaultPort(of: lowered) else {
            throw .local(.unsupportedScheme, "RFC 3986 3.2.3")
        }
        self.scheme = lowered
        self.host = host
        self.port = port
        isSecure = lowered == "https" || lowered == "wss" || lowered == "ftps"
    }

    /// Returns the default port of a scheme: 80 or 443, 21 or 990; `nil` for other schemes.
    public static func defaultPort(of scheme: String) -> UInt16? {
        switch scheme {
        case "http", "ws": 80
        case "https", "wss": 443
        case "ftp": 21
        case "ftps": 990
        default: nil
        }
    }

    /// Whether the port is the scheme's default, which is then omitted.
    public var hasDefaultPort: Bool { Self.defaultPort(of: scheme) == port }

    /// Whether the scheme requires TLS.
    public let isSecure: Bool

    /// The value of a Host field (RFC 9110 §7.2), with the port only if it is not the scheme's default.
    public var authority: String { hasDefaultPort ? host.authority : "\(host.authority):\(port)" }

    /// The origin as a URL without a path.
    public var description: String {
        "\(scheme)://\(host)\(hasDefaultPort ? "" : ":\(port)")"
    }
}
