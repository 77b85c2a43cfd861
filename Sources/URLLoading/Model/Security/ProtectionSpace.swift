// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingWire

/// A part of a server to which one credential gives access (RFC 9110 §11.5).
///
/// ```swift
/// let space = ProtectionSpace(host: "example.org", port: 443, scheme: "https", realm: "staff", method: .digest)
/// ```
public struct ProtectionSpace: Sendable, Hashable, CustomStringConvertible {
    /// The host in normal form.
    public let host: String
    /// The port of the server or proxy.
    public let port: Int
    /// The scheme of the server's URLs, such as `https`; for a proxy, its kind.
    public let scheme: String
    /// The realm that the server names; `nil` if it names none.
    public let realm: String?
    /// The authentication scheme; a custom handler may use any name.
    public let method: Challenge.Method
    /// True if a proxy authenticates the client.
    public let isProxy: Bool

    /// Creates a protection space from its parts; ``init(server:realm:method:)`` takes them from a URL.
    public init(
        host: String, port: Int, scheme: String, realm: String? = nil, method: Challenge.Method, isProxy: Bool = false
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.realm = realm
        self.method = method
        self.isProxy = isProxy
    }

    /// Makes the protection space of a URL's server, with the host in normal form.
    /// - Parameter server: a URL of http, https, ftp or ftps; only its scheme, host and port are used.
    /// - Throws: ``LoadError/Reason/badURL`` or ``LoadError/Reason/unsupportedScheme``.
    public init(server: URL, realm: String? = nil, method: Challenge.Method = .any) throws(LoadError) {
        let origin: Origin
        do throws(WireViolation) {
            let isFTP = server.scheme?.lowercased().hasPrefix("ftp") == true
            origin = try isFTP ? FTPTarget(server.absoluteString).origin : Target(server.absoluteString).origin
        } catch { throw LoadError(error, .preparing) }
        self.init(
            host: "\(origin.host)", port: Int(origin.port), scheme: origin.scheme, realm: realm, method: method)
    }

    /// `https://example.org:443 "staff" Digest`.
    public var description: String {
        "\(isProxy ? "proxy " : "")\(scheme)://\(host):\(port)\(realm.map { " \"\($0)\"" } ?? "") \(method)"
    }
}
