// SPDX-License-Identifier: Apache-2.0

/// The policy of a Strict-Transport-Security field (RFC 6797 §6.1).
///
/// ```swift
/// HSTSPolicy("max-age=31536000; includeSubDomains")?.includesSubdomains   // true
/// ```
package struct HSTSPolicy: Sendable, Hashable {
    /// Seconds from the receipt of the field; 0 removes the host.
    package var maximumAge: Int64
    package var includesSubdomains = false

    /// Parses a field; `nil` if it violates the grammar, in which case the whole field is ignored (§8.1). Unknown
    /// directives are skipped; a repeated directive makes the field invalid.
    package init?(_ field: some Collection<UInt8>) {
        var directives: [String: [UInt8]?] = [:]
        for part in Self.parts(Array(field)) {
            let part = Self.trimmed(part)
            guard !part.isEmpty else { continue }
            let equals = part.firstIndex(of: UInt8(ascii: "="))
            let name = Self.trimmed(part[..<(equals ?? part.endIndex)])
            guard !name.isEmpty, name.allSatisfy({ ByteSet.token.contains($0) }) else { return nil }
            var value: [UInt8]?
            if let equals {
                guard let text = Self.value(Self.trimmed(part[(equals + 1)...])) else { return nil }
                value = text
            }
            let key = String(decoding: name, as: UTF8.self).lowercasedASCII
            guard directives.updateValue(value, forKey: key) == nil else { return nil }
        }
        guard case let age?? = directives["max-age"], !age.isEmpty, age.allSatisfy(\.isDigit) else { return nil }
        maximumAge = Int64(strictDigits: age) ?? .max
        // includeSubDomains has no value (§6.1.2).
        if let flag = directives["includesubdomains"] {
            guard flag == nil else { return nil }
            includesSubdomains = true
        }
    }

    /// Splits the field at semicolons outside quoted strings.
    private static func parts(_ field: [UInt8]) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var (start, isQuoted, isEscaped) = (0, false, false)
        for (index, byte) in field.enumerated() {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ";"), !isQuoted {
                parts.append(field[start..<index])
                start = index + 1
            }
        }
        return parts + [field[start...]]
    }

    /// Returns the content of a token or quoted string; `nil` for anything else.
    private static func value(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.first == UInt8(ascii: "\"") else {
            return !text.isEmpty && text.allSatisfy { ByteSet.token.contains($0) } ? Array(text) : nil
        }
        guard text.count >= 2, text.last == UInt8(ascii: "\"") else { return nil }
        var (plain, isEscaped) = ([UInt8](), false)
        for byte in text.dropFirst().dropLast() {
            if !isEscaped, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if !isEscaped, byte == UInt8(ascii: "\"") {
                return nil
            } else {
                plain.append(byte)
                isEscaped = false
            }
        }
        return isEscaped ? nil : plain
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = text.drop { $0.isBlank }
        return start.prefix(upTo: (start.lastIndex { !$0.isBlank } ?? start.startIndex - 1) + 1)
    }
}
