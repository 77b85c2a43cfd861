// SPDX-License-Identifier: Apache-2.0

/// The disposition of the content and the file name that the sender proposes (RFC 6266, RFC 7578 §4.2).
///
/// ```swift
/// let disposition = ContentDisposition("attachment; filename=\"E.txt\"; filename*=UTF-8''%E2%82%AC.txt")
/// disposition?.type       // "attachment"
/// disposition?.fileName   // "€.txt"
/// ```
///
/// > Important: ``fileName`` is unchanged from the peer: it may be a path, `..`, empty, or contain any
/// > character. Derive a safe name from it before creating a file (RFC 6266 §4.3).
///
/// Lenient where servers are careless: see ``LooseParameters``. Two forms stay undecoded although some browsers decode
/// them, because RFC 6266 gives them no meaning and a name may really look like that: `%41` in a plain `filename`, and
/// `=?UTF-8?Q?…?=`.
package struct ContentDisposition: Sendable, Hashable {
    /// `attachment`, `inline`, `form-data` or another type, in lower case. A field that begins with a parameter means
    /// `attachment`, as an unknown type does (RFC 6266 §4.2).
    package let type: String
    /// The proposed file name: `filename*` if it can be decoded, otherwise `filename`.
    package let fileName: String?
    /// The name of the form field, in `form-data`.
    package let name: String?

    /// Parses a Content-Disposition field; `nil` if it is empty.
    package init?(_ text: String) {
        var parameters = LooseParameters(text)
        var first = parameters.first()
        guard text.utf8.contains(where: { !$0.isBlank && $0 != UInt8(ascii: ";") }) else { return nil }
        if first.utf8.contains(UInt8(ascii: "=")) {
            parameters = LooseParameters(text)
            first = ""
        }
        type = Self.type(first)
        let backslash: LooseParameters.Backslash = type == "form-data" ? .isLiteral : .escapes
        var (plain, extended, name): (String?, String?, String?) = (nil, nil, nil)
        // RFC 6266 §4.3 allows each parameter once; the first one counts.
        while let parameter = parameters.next(backslash) {
            switch parameter.name {
            case "filename": plain = plain ?? parameter.value
            case "filename*": extended = extended ?? ExtendedValue.decode(parameter.value)
            case "name": name = name ?? parameter.value
            default: break
            }
        }
        fileName = extended ?? plain
        self.name = name
    }

    private static func type(_ text: String) -> String {
        let token = text.utf8.drop { $0 == UInt8(ascii: "\"") }.prefix { ByteSet.token.contains($0) }
        return token.isEmpty ? "attachment" : String(decoding: token, as: UTF8.self).lowercasedASCII
    }
}

/// Values in the form `UTF-8'en'%e2%82%ac` (RFC 8187 §3.2).
enum ExtendedValue {
    /// Decodes a value; `nil` if its form or charset is not supported, or its bytes are invalid in the charset. The
    /// plain parameter is then used instead.
    static func decode(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentCoding.decode(Array(parts[2])) else { return nil }
        switch String(decoding: parts[0], as: UTF8.self).lowercasedASCII {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        // RFC 8187 §3.2.1 allows only UTF-8; RFC 5987, its predecessor, also allowed ISO-8859-1.
        case "iso-8859-1": return latin1(bytes)
        default: return nil
        }
    }

    private static func latin1(_ bytes: [UInt8]) -> String {
        var text = ""
        for byte in bytes { text.unicodeScalars.append(Unicode.Scalar(byte)) }
        return text
    }
}
