public import FoundationEssentials
import URLLoadingWire

/// A part of a server that one credential opens (RFC 9110 §11.5).
///
/// ```swift
/// let space = ProtectionSpace(host: "example.org", port: 443, scheme: "https", realm: "staff", method: .digest)
/// ```
public struct ProtectionSpace: Sendable, Hashable, CustomStringConvertible {
    /// In normal form.
    public let host: String
    public let port: Int
    /// The scheme of its URLs, such as `https`; of a proxy, its kind.
    public let scheme: String
    /// The name the server gives it; `nil` if it gives none.
    public let realm: String?
    /// How it is opened; of a handler's own, any name.
    public let method: Challenge.Method
    /// It is a proxy that asks.
    public let isProxy: Bool

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

    /// A part of the server that a URL is of, its host in normal form.
    /// - Parameter server: of http, https, ftp or ftps; what follows host and port is not looked at.
    /// - Throws: ``LoadError/Reason/badURL``, ``LoadError/Reason/unsupportedScheme``.
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
