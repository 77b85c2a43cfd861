/// The text of a proxy taken apart, as people write it into `http_proxy` and on command lines:
/// `scheme://user:password@host:port`, of which the host alone must be there.
///
/// ```swift
/// let address = try ProxyAddress("socks5h://u:p%40ss@gate.example:1081")
/// address.scheme     // "socks5h"
/// address.password   // "p@ss"
/// ```
/// Errors name the rule and never the text, which may hold a password.
package struct ProxyAddress: Sendable {
    /// In lower case; `nil` if none was written.
    package let scheme: String?
    package let host: Origin.Host
    package let port: UInt16?
    /// Percent-decoded.
    package let user: String?
    package let password: String?

    package init(_ text: String) throws(WireViolation) {
        let hasScheme = text.contains("://")
        let reference = try URIReference(hasScheme ? text : "http://" + text)
        let parts = reference.parts
        guard let host = parts.host, !host.isEmpty else { throw .local(.invalidHost, "RFC 3986 3.2.2") }
        guard parts.query == nil, parts.fragment == nil, ["", "/"].contains(reference.path)
        else { throw .local(.invalidURL, "RFC 3986 4.3") }
        scheme = hasScheme ? reference.scheme?.lowercasedASCII : nil
        self.host = try Origin.Host(bytes: reference.bytes[host])
        port = parts.port
        (user, password) = try Target.credentials(parts.userinfo.map { reference.bytes[$0] })
    }
}
