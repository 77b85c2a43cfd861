// SPDX-License-Identifier: Apache-2.0

/// Reads tokens and quoted strings (RFC 9110 §5.6) from left to right.
struct ParameterScanner {
    let bytes: [UInt8]
    var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { position == bytes.count }

    mutating func skipBlanks() {
        while position < bytes.count, bytes[position].isBlank { position += 1 }
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    mutating func token() -> String? {
        let start = position
        while position < bytes.count, ByteSet.token.contains(bytes[position]) { position += 1 }
        return start == position ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    mutating func tokenOrQuoted() -> String? {
        take("\"") ? restOfQuoted() : token()
    }

    /// Advances to a character, or to the end.
    mutating func skip(to character: Unicode.Scalar) {
        while position < bytes.count, bytes[position] != UInt8(ascii: character) { position += 1 }
    }

    /// Returns the text up to a character, or up to the end, without trailing blanks; `nil` if it is empty or contains
    /// bytes that are forbidden in field values.
    mutating func text(to character: Unicode.Scalar) -> String? {
        let start = position
        skip(to: character)
        var text = bytes[start..<position]
        while text.last?.isBlank == true { text.removeLast() }
        guard !text.isEmpty, !text.contains(where: \.isForbiddenInValue) else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads a quoted string that may lack its closing quote; the opening quote has been consumed.
    mutating func openQuoted() -> String? { restOfQuoted(mustClose: false) }

    /// Reads a quoted string (RFC 9110 §5.6.4); the opening quote has been consumed.
    private mutating func restOfQuoted(mustClose: Bool = true) -> String? {
        var text: [UInt8] = []
        while position < bytes.count {
            var byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
            if byte == UInt8(ascii: "\\"), position < bytes.count || mustClose {
                guard position < bytes.count else { return nil }
                byte = bytes[position]
                position += 1
            }
            if byte.isForbiddenInValue { return nil }
            text.append(byte)
        }
        return mustClose ? nil : String(decoding: text, as: UTF8.self)
    }
}
