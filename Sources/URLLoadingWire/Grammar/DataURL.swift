// SPDX-License-Identifier: Apache-2.0

/// A parsed `data` URL (RFC 2397). Where the RFC is silent, it is read as browsers do (Fetch, "data: URL processor"):
/// an invalid media type becomes US-ASCII text, a percent sign without two digits stands for itself, and so on. Only a
/// missing comma makes it invalid.
package struct DataURL: Sendable, Hashable {
    package let mediaType: MediaType?
    /// True if the payload is Base64, which is still to be decoded.
    package let isBase64: Bool
    /// The payload, percent-decoded.
    package let payload: [UInt8]

    /// - Parameter text: the whole URL.
    /// - Returns: `nil` if it is not a data URL.
    package init?(_ text: String) {
        let scheme = "data:"
        guard text.prefix(scheme.count).lowercasedASCII == scheme else { return nil }
        // A fragment is not part of the loaded resource (RFC 3986 §3.5).
        let rest = text.utf8.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        guard let comma = rest.firstIndex(of: UInt8(ascii: ",")) else { return nil }
        var type = String(decoding: rest[..<comma], as: UTF8.self).trimmingBlanks
        payload = Self.decoded(rest[rest.index(after: comma)...])
        isBase64 = Self.takeBase64(&type)
        if type.hasPrefix(";") { type = "text/plain" + type }
        mediaType = MediaType(type) ?? MediaType("text/plain;charset=US-ASCII")
    }

    private static func takeBase64(_ type: inout String) -> Bool {
        guard let semicolon = type.lastIndex(of: ";"),
            type[type.index(after: semicolon)...].trimmingBlanks.lowercasedASCII == "base64"
        else { return false }
        type = String(type[..<semicolon])
        return true
    }

    private static func decoded(_ bytes: Substring.UTF8View) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first?.hexValue, let low = rest.dropFirst().first?.hexValue {
                decoded.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }

    /// The payload in the form of RFC 4648 §4, with blanks removed and padding corrected; `nil` if that is impossible.
    package var base64: [UInt8]? {
        var text = payload.filter { ![0x09, 0x0A, 0x0C, 0x0D, 0x20].contains($0) }
        if text.count % 4 == 0 {
            for _ in 0..<2 where text.last == UInt8(ascii: "=") { text.removeLast() }
        }
        guard text.count % 4 != 1, !text.contains(UInt8(ascii: "=")) else { return nil }
        return text + [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
    }
}

extension StringProtocol {
    fileprivate var trimmingBlanks: String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0.isNewline }
        return String(String(self.drop(while: isBlank)).reversed().drop(while: isBlank).reversed())
    }

    fileprivate var lowercasedASCII: String { String(self).lowercasedASCII }
}
