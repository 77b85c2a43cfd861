// SPDX-License-Identifier: Apache-2.0

// The arguments of `-d` and its companions: parts of a body or of a query.

extension Options.Payload {
    /// Parses `TEXT`, `=TEXT`, `NAME=TEXT`, `@FILE` or `NAME@FILE` (`--data-urlencode`): the name stays as it is, the
    /// rest is percent-encoded.
    static func encoding(_ text: String) -> Self {
        guard let mark = text.firstIndex(of: "=") ?? text.firstIndex(of: "@") else { return .text(encoded(text.utf8)) }
        let name = text[..<mark]
        let rest = String(text[text.index(after: mark)...])
        let prefix = name.isEmpty ? "" : name + "="
        guard text[mark] == "@" else { return .text(prefix + encoded(rest.utf8)) }
        return Self(content: .encoded(rest, prefix: prefix))
    }

    /// JSON, or the path of a JSON file; no `&` separates it from the part before.
    static func json(_ text: String) -> Self {
        var part: Self = text.hasPrefix("@") ? .file(String(text.dropFirst())) : .text(text)
        part.isField = false
        return part
    }

    /// Percent-encodes all bytes except letters, digits, `-`, `.`, `_` and `~`; a blank becomes `+`.
    static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: text.append(byte)
            case 0x20: text.append(0x2B)
            default: text += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
