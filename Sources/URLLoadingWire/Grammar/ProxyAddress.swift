// SPDX-License-Identifier: Apache-2.0

/// The parsed text of a proxy as written into `http_proxy` and on command lines: `scheme://user:password@host:port`,
/// where only the host is required.
///
/// ```swift
/// let address = try ProxyAddress("socks5h://u:p%40ss@gate.example:1081")
/// address.scheme     // "socks5h"
/// address.password   // "p@ss"
/// ```
/// Errors name the violated rule and never the text, which may contain a password.
package struct ProxyAddress: Sendable {
    /// The scheme in lower case; `nil` if none was written.
    package let scheme: String?
    package let host: Origin.Host
    package let port: UInt16?
    /// The path of a Unix socket, percent-decoded: `socks5h://localhost/run/gate.sock`, as in curl. Only with that
    /// host, and without a port.
    package let socketPath: String?
    /// The user, percent-decoded.
    package let user: String?
    package let password: String?

    package init(_ text: String) throws(WireViolation) {
        var rest = Array(text.utf8)[...]
        let mark = rest.indices.first { rest[$0...].starts(with: "://".utf8) }
        let hasScheme = mark != nil
        let scheme = mark.map { Array(rest[..<$0]) } ?? Array("http".utf8)
        if let mark { rest = rest[(mark + 3)...] }
        // Remove the credentials first, so that their content, percent-encoded, cannot be mistaken for a host.
        let end =
            rest.firstIndex { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) } ?? rest.endIndex
        let at = rest[..<end].firstIndex(of: UInt8(ascii: "@"))
        let reference = try URIReference(
            bytes: scheme + Array("://".utf8) + rest[(at.map { $0 + 1 } ?? rest.startIndex)...])
        let parts = reference.parts
        guard parts.userinfo == nil else { throw .local(.ambiguousAuthority, "RFC 3986 3.2.1") }
        guard let host = parts.host, !host.isEmpty else { throw .local(.invalidHost, "RFC 3986 3.2.2") }
        guard parts.query == nil, parts.fragment == nil else { throw .local(.invalidURL, "RFC 3986 4.3") }
        socketPath = try Self.socketPath(
            reference.path,
            mayBe: hasScheme && parts.port == nil && reference.bytes[host].elementsEqual("localhost".utf8))
        self.scheme = hasScheme ? reference.scheme?.lowercasedASCII : nil
        self.host = try Origin.Host(bytes: reference.bytes[host])
        port = parts.port
        (user, password) = try Target.credentials(at.map { rest[..<$0] })
    }

    private static func socketPath(_ path: String, mayBe: Bool) throws(WireViolation) -> String? {
        guard !["", "/"].contains(path) else { return nil }
        guard mayBe, let decoded = PercentCoding.decode(Array(path.utf8)[...]),
            let text = String(validating: decoded, as: UTF8.self)
        else { throw .local(.invalidURL, "RFC 3986 4.3") }
        return text
    }
}
