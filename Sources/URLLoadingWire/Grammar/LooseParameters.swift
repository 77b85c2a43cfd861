// SPDX-License-Identifier: Apache-2.0

/// Reads `; name=value` pairs leniently, for fields in which every browser repairs servers' mistakes.
/// ``ParameterScanner`` is the strict reader.
///
/// Accepts blanks around "=", unquoted values that are not tokens, an unclosed quote, text after a closed quote, empty
/// pairs, and pairs without "=".
struct LooseParameters {
    /// The meaning of a backslash inside quotes.
    enum Backslash {
        /// Escapes the next character (RFC 9110 §5.6.4).
        case escapes
        /// Stands for itself (WHATWG form-data, where a quote is written `%22`).
        case isLiteral
    }

    struct Parameter {
        /// In lower case.
        var name: String
        /// The value, unquoted, decoded as UTF-8.
        var value: String
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Returns the text before the first ";", without blanks at its ends.
    mutating func first() -> String {
        position = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
        return text(0, position)
    }

    /// Returns the next pair; `nil` at the end.
    mutating func next(_ backslash: Backslash = .escapes) -> Parameter? {
        while position < bytes.count {
            while position < bytes.count, bytes[position].isBlank || bytes[position] == UInt8(ascii: ";") {
                position += 1
            }
            let start = position
            while position < bytes.count, bytes[position] != UInt8(ascii: "="), bytes[position] != UInt8(ascii: ";") {
                position += 1
            }
            guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { continue }
            let name = text(start, position).lowercasedASCII
            position += 1
            let value = value(backslash)
            if !name.isEmpty { return Parameter(name: name, value: value) }
        }
        return nil
    }

    private mutating func value(_ backslash: Backslash) -> String {
        while position < bytes.count, bytes[position].isBlank { position += 1 }
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return unquoted() }
        position += 1
        let value = quoted(isDrivePath ? .isLiteral : backslash)
        position = bytes[position...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
        return value
    }

    private mutating func unquoted() -> String {
        let start = position
        position = bytes[position...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
        return text(start, position)
    }

    private mutating func quoted(_ backslash: Backslash) -> String {
        var value: [UInt8] = []
        while position < bytes.count {
            var byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\"), case .escapes = backslash, position < bytes.count {
                byte = bytes[position]
                position += 1
            }
            value.append(byte)
        }
        return String(decoding: value, as: UTF8.self)
    }

    /// Whether an unescaped `C:\path` stands in the quotes. A sender of one does not escape; an escaping sender writes
    /// two backslashes.
    private var isDrivePath: Bool {
        guard bytes.count - position > 3 else { return false }
        let backslash = UInt8(ascii: "\\")
        return bytes[position].isAlpha && bytes[position + 1] == UInt8(ascii: ":")
            && bytes[position + 2] == backslash && bytes[position + 3] != backslash
    }

    private func text(_ start: Int, _ end: Int) -> String {
        var slice = bytes[start..<end]
        while slice.first?.isBlank == true { slice.removeFirst() }
        while slice.last?.isBlank == true { slice.removeLast() }
        return String(decoding: slice, as: UTF8.self)
    }
}
