/// What to do with the content, and what the sender would call it (RFC 6266, RFC 7578 4.2).
///
/// ```swift
/// let disposition = ContentDisposition("attachment; filename=\"E.txt\"; filename*=UTF-8''%E2%82%AC.txt")
/// disposition?.type       // "attachment"
/// disposition?.fileName   // "€.txt"
/// ```
///
/// > Important: ``fileName`` is what the peer says, unchanged: it may be a path, `..`, empty, or hold any
/// > character at all. Whoever makes a file of it must make a safe name of it first (RFC 6266 4.3).
///
/// Loose where servers are: see ``LooseParameters``. Two things are left as they are although some
/// browsers decode them, since RFC 6266 gives them no meaning and a name may really look like that:
/// `%41` in a plain `filename`, and `=?UTF-8?Q?…?=`.
package struct ContentDisposition: Sendable, Hashable {
    /// `attachment`, `inline`, `form-data` or another one, in lower case. A field that begins with a
    /// parameter means `attachment`, as one with an unknown type does (RFC 6266 4.2).
    package let type: String
    /// The name of the file as stated: `filename*` if it can be read, else `filename`.
    package let fileName: String?
    /// The name of the form field, in `form-data`.
    package let name: String?

    /// The value of a Content-Disposition field; `nil` if there is nothing in it.
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
        // RFC 6266 4.3 wants each at most once; of two, the first counts.
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

    /// Whether the content is to be saved rather than shown: every type but the two that say otherwise.
    package var isAttachment: Bool { type != "inline" && type != "form-data" }

    private static func type(_ text: String) -> String {
        let token = text.utf8.drop { $0 == UInt8(ascii: "\"") }.prefix { ByteSet.token.contains($0) }
        return token.isEmpty ? "attachment" : String(decoding: token, as: UTF8.self).lowercasedASCII
    }
}

/// `UTF-8'en'%e2%82%ac` (RFC 8187 3.2).
enum ExtendedValue {
    /// The text; `nil` if the form or the charset is another one, or the bytes are not in it: then the
    /// plain parameter is the better one.
    static func decode(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentCoding.decode(Array(parts[2])) else { return nil }
        switch String(decoding: parts[0], as: UTF8.self).lowercasedASCII {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        // RFC 8187 3.2.1 has only UTF-8; RFC 5987, which it replaces, had this one as well.
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
