// SPDX-License-Identifier: Apache-2.0

// In this folder: percent escapes as older programs expect them

public import Foundation

extension String {
    /// Returns the string with percent escapes, in a given encoding: escapes `%`, the characters that are invalid in
    /// URLs, and those that the caller names.
    ///
    /// ```swift
    /// "rock & roll/1".addingPercentEscapes(using: .utf8, escaping: String.reservedURLCharacters)
    /// // rock%20%26%20roll%2F1
    /// ```
    /// RFC 3986 leaves letters, digits and `-._~` unescaped. Its reserved characters (§2.2), except `#`, `[` and `]`,
    /// stay unescaped too unless they are in `escaping`. ``replacingPercentEscapes(using:leaving:)`` with the same
    /// encoding reverses all escapes.
    /// - Parameters:
    ///   - encoding: the encoding of the escaped bytes.
    ///   - characters: further characters to escape.
    ///   - leaving: characters that are never escaped.
    /// - Returns: the escaped string; `nil` if a character does not exist in the encoding.
    public func addingPercentEscapes(
        using encoding: String.Encoding, escaping characters: String = "", leaving: String = ""
    ) -> String? {
        let (escaped, left) = (Set(characters), Set(leaving))
        var text = ""
        for character in self {
            let isLegal = character.unicodeScalars.allSatisfy { Self.legal.contains($0) }
            if left.contains(character) || isLegal && !escaped.contains(character) {
                text.append(character)
                continue
            }
            guard let bytes = String(character).data(using: encoding) else { return nil }
            for byte in bytes { text += Self.escape(byte) }
        }
        return text
    }

    /// Returns the string with its percent escapes decoded in a given encoding.
    ///
    /// ```swift
    /// "rock%20%26%20roll%2F1".replacingPercentEscapes(using: .utf8, leaving: "/")   // rock & roll%2F1
    /// ```
    /// - Parameters:
    ///   - encoding: the encoding of the escaped bytes.
    ///   - characters: the characters whose escapes are kept; none by default.
    /// - Returns: the decoded string; `nil` if two hexadecimal digits do not follow a `%`, or the bytes are invalid in
    ///   the encoding.
    public func replacingPercentEscapes(using encoding: String.Encoding, leaving characters: String = "") -> String? {
        let left = Set(characters)
        let bytes = Array(utf8)
        var text = ""
        var place = 0
        var plain = 0
        while place < bytes.count {
            guard bytes[place] == UInt8(ascii: "%") else {
                place += 1
                continue
            }
            text += String(decoding: bytes[plain..<place], as: UTF8.self)
            var run: [UInt8] = []
            while place < bytes.count, bytes[place] == UInt8(ascii: "%") {
                guard place + 2 < bytes.count, let high = Self.digit(bytes[place + 1]),
                    let low = Self.digit(bytes[place + 2])
                else { return nil }
                run.append(high << 4 | low)
                place += 3
            }
            plain = place
            guard let decoded = String(bytes: run, encoding: encoding) else { return nil }
            guard !left.isEmpty else {
                text += decoded
                continue
            }
            for character in decoded {
                guard left.contains(character), let own = String(character).data(using: encoding) else {
                    text.append(character)
                    continue
                }
                for byte in own { text += Self.escape(byte) }
            }
        }
        return text + String(decoding: bytes[plain...], as: UTF8.self)
    }

    /// The reserved characters of RFC 3986 §2.2: `:/?#[]@!$&'()*+,;=`.
    public static let reservedURLCharacters = ":/?#[]@!$&'()*+,;="

    private static let legal: Set<Unicode.Scalar> = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?@!$&'()*+,;=".unicodeScalars)

    private static func escape(_ byte: UInt8) -> String {
        let digits = Array("0123456789ABCDEF")
        return "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
