// SPDX-License-Identifier: Apache-2.0

/// The parts of an absolute `ftp` or `ftps` URL that a transfer needs, computed once.
///
/// ```swift
/// let target = try FTPTarget("ftp://ada:secret@example.org/pub/a%20b.txt")
/// target.origin.port   // 21; of ftps, which begins with TLS, 990
/// target.path.bytes    // "pub/a b.txt"
/// ```
package struct FTPTarget: Sendable, Hashable {
    package let origin: Origin
    /// The user of the userinfo, percent-decoded; `nil` without userinfo.
    package let user: String?
    /// The password of the userinfo, percent-decoded; `nil` without a colon in it.
    package let password: String?
    package let path: FTPPath

    /// Parses a URL. Throws `unsupportedScheme`, `invalidHost`, `invalidFTPArgument`, or the errors of
    /// ``URIReference``.
    package init(_ absoluteURLString: String) throws(WireViolation) {
        let reference = try URIReference(absoluteURLString)
        let (bytes, parts) = (reference.bytes, reference.parts)
        guard let scheme = parts.scheme else { throw .local(.invalidURL, "RFC 3986 4.3") }
        guard let known = Self.schemes.first(where: { bytes[scheme].elementsEqual($0.utf8, by: { $0.lowered == $1 }) })
        else { throw .local(.unsupportedScheme, "RFC 1738 3.2") }
        guard let host = parts.host, !host.isEmpty else { throw .local(.invalidHost, "RFC 1738 3.2") }
        origin = try Origin(scheme: known, host: Origin.Host(bytes: bytes[host]), port: parts.port)
        (user, password) = try Target.credentials(parts.userinfo.map { bytes[$0] })
        // FTP has no queries: text that looks like one belongs to the file name (RFC 1738 §3.2).
        let end = parts.query?.upperBound ?? parts.path.upperBound
        path = try FTPPath(String(decoding: bytes[parts.path.lowerBound..<end], as: UTF8.self))
    }

    private static let schemes = ["ftps", "ftp"]
}
