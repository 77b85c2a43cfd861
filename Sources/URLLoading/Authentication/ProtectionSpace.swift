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

    /// `https://example.org:443 "staff" Digest`.
    public var description: String {
        "\(isProxy ? "proxy " : "")\(scheme)://\(host):\(port)\(realm.map { " \"\($0)\"" } ?? "") \(method)"
    }
}
