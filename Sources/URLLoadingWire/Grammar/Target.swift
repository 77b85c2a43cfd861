// SPDX-License-Identifier: Apache-2.0

/// The parts of an absolute `http` or `https` URL that a request needs, computed once.
///
/// ```swift
/// let target = try Target("http://u:p@example.com:8080/a?b#c")
/// target.origin.description   // "http://example.com:8080"
/// target.originForm           // "/a?b" as bytes
/// ```
package struct Target: Sendable, Hashable, CustomStringConvertible {
    /// The origin: scheme, host and port.
    package let origin: Origin
    /// The user of the userinfo, percent-decoded; `nil` without userinfo.
    package let user: String?
    /// The password of the userinfo, percent-decoded; `nil` without a colon in it.
    package let password: String?
    /// Path and query for the request line (RFC 9112 §3.2.1), without a fragment.
    package let originForm: [UInt8]
    /// The value of the Host field.
    package let hostField: [UInt8]

    /// Parses a URL. Throws `unsupportedScheme`, `invalidHost`, or the errors of ``URIReference``.
    package init(_ absoluteURLString: String) throws(WireViolation) {
        try self.init(URIReference(absoluteURLString))
    }

    /// Takes the parts from an absolute reference.
    package init(_ reference: URIReference) throws(WireViolation) {
        let (bytes, parts) = (reference.bytes, reference.parts)
        guard let scheme = parts.scheme else { throw .local(.invalidURL, "RFC 3986 4.3") }
        guard let known = Self.knownScheme(bytes[scheme]) else { throw .local(.unsupportedScheme, "RFC 9110 4.2") }
        // RFC 9110 §4.2.1: a URI with an empty host is invalid.
        guard let host = parts.host, !host.isEmpty else { throw .local(.invalidHost, "RFC 9110 4.2.1") }
        origin = try Origin(scheme: known, host: Origin.Host(bytes: bytes[host]), port: parts.port)
        (user, password) = try Self.credentials(parts.userinfo.map { bytes[$0] })
        originForm = Self.originForm(bytes, parts)
        hostField = Array(origin.authority.utf8)
    }

    /// The whole URL for a proxy, without userinfo and fragment (RFC 9112 §3.2.2).
    package var absoluteForm: [UInt8] { "\(origin.scheme)://".utf8 + hostField + originForm }

    /// The URL without userinfo, query and fragment.
    package var description: String {
        let path = originForm.prefix { $0 != UInt8(ascii: "?") }
        return "\(origin)\(String(decoding: path, as: UTF8.self))"
    }

    private static func knownScheme(_ text: ArraySlice<UInt8>) -> String? {
        for scheme in ["https", "http"] where text.elementsEqual(scheme.utf8, by: { $0.lowered == $1 }) {
            return scheme
        }
        return nil
    }

    private static func originForm(_ bytes: [UInt8], _ parts: URIParts) -> [UInt8] {
        var form: [UInt8] = []
        form.reserveCapacity(parts.path.count + (parts.query?.count ?? 0) + 2)
        if parts.path.isEmpty { form.append(UInt8(ascii: "/")) } else { form += bytes[parts.path] }
        if let query = parts.query {
            form.append(UInt8(ascii: "?"))
            form += bytes[query]
        }
        return form
    }

    /// Splits and decodes the userinfo. Refuses control characters, which would end up in a header field, and NUL in a
    /// C string.
    static func credentials(
        _ userinfo: ArraySlice<UInt8>?
    ) throws(WireViolation) -> (user: String?, password: String?) {
        guard let userinfo else { return (nil, nil) }
        let colon = userinfo.firstIndex(of: UInt8(ascii: ":"))
        let user = try decoded(userinfo[..<(colon ?? userinfo.endIndex)])
        guard let colon else { return (user, nil) }
        return (user, try decoded(userinfo[(colon + 1)...]))
    }

    private static func decoded(_ text: ArraySlice<UInt8>) throws(WireViolation) -> String {
        guard let bytes = PercentCoding.decode(text), !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            let decoded = String(validating: bytes, as: UTF8.self)
        else { throw .local(.invalidURL, "RFC 3986 3.2.1") }
        return decoded
    }
}
