// SPDX-License-Identifier: Apache-2.0

/// A parsed URI reference (RFC 3986 §4.1): the bytes, and the ranges of the parts in them.
///
/// Strict by default: text outside the grammar is refused, above all text that two parsers could read differently.
/// `repairing` is for values of Location, which are often written carelessly: harmless bytes in path, query and
/// fragment are percent-encoded first.
///
/// The host is not parsed further: ``Origin/Host`` does that.
package struct URIReference: Sendable, Hashable, CustomStringConvertible {
    let bytes: [UInt8]
    let parts: URIParts

    /// Parses `text`; throws `invalidURL`, `invalidPort` or `ambiguousAuthority`.
    package init(_ text: String, repairing: Bool = false) throws(WireViolation) {
        try self.init(bytes: Array(text.utf8), repairing: repairing)
    }

    /// Parses bytes, for a Location value that is not UTF-8.
    package init(bytes: [UInt8], repairing: Bool = false) throws(WireViolation) {
        let sound = repairing ? URIRepair.repaired(bytes) : bytes
        self.bytes = sound
        parts = try URIParser.parse(sound)
    }

    package var scheme: String? { parts.scheme.map(text) }
    /// The userinfo, percent-encoded. May contain a password: never log it.
    package var userinfo: String? { parts.userinfo.map(text) }
    package var host: String? { parts.host.map(text) }
    package var port: UInt16? { parts.port }
    package var path: String { text(parts.path) }
    package var query: String? { parts.query.map(text) }
    package var fragment: String? { parts.fragment.map(text) }

    /// The reference including its userinfo: for sending, never for logs.
    package var absoluteString: String { text(bytes.startIndex..<bytes.endIndex) }

    /// The reference without its userinfo.
    package var removingUserinfo: URIReference {
        var components = URIComponents(self)
        components.userinfo = nil
        return URIReference(components)
    }

    /// The reference without its userinfo, for logs.
    package var description: String { removingUserinfo.absoluteString }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
}

/// The ranges of the parts of a reference. An absent part is `nil`, an empty one is not.
struct URIParts: Sendable, Hashable {
    var scheme: Range<Int>?
    var userinfo: Range<Int>?
    var host: Range<Int>?
    /// The digits; empty in `http://a:/`.
    var portText: Range<Int>?
    var port: UInt16?
    var path = 0..<0
    var query: Range<Int>?
    var fragment: Range<Int>?
}
