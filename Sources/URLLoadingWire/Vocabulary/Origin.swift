/// Scheme, host and port: who answers (RFC 6454 4).
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
    /// The port, given or the scheme's own.
    public let port: UInt16

    /// An origin. Without `port` the scheme must be one whose port is known: `http`, `https`, `ws`,
    /// `wss`, `ftp` or `ftps`; otherwise `unsupportedScheme` is thrown, `invalidURL` for what is no scheme.
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
    }

    /// The port a scheme has when none is written: 80 or 443, 21 or 990; `nil` for other schemes.
    public static func defaultPort(of scheme: String) -> UInt16? {
        switch scheme {
        case "http", "ws": 80
        case "https", "wss": 443
        case "ftp": 21
        case "ftps": 990
        default: nil
        }
    }

    /// Whether the port is the scheme's own, so that it is not written.
    public var hasDefaultPort: Bool { Self.defaultPort(of: scheme) == port }

    /// Whether the scheme asks for TLS.
    public var isSecure: Bool { scheme == "https" || scheme == "wss" || scheme == "ftps" }

    /// The value of a Host field (RFC 9110 7.2): the port only when it is not the scheme's own.
    public var authority: String { hasDefaultPort ? host.authority : "\(host.authority):\(port)" }

    /// As a URL without a path.
    public var description: String {
        "\(scheme)://\(host)\(hasDefaultPort ? "" : ":\(port)")"
    }
}
