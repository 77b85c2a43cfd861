// SPDX-License-Identifier: Apache-2.0

/// Basic authentication (RFC 7617), always in UTF-8, the only charset a server may name (§2.1).
package enum BasicAuthorization {
    /// Returns the value of Authorization or Proxy-Authorization; `nil` if the user contains a colon, or either text a
    /// control character (§2).
    package static func value(user: String, password: String) -> String? {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
        let text = Array("\(user):\(password)".utf8)
        guard !text.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return "Basic " + Base64.encode(text)
    }
}

/// Bearer tokens (RFC 6750 §2.1).
package enum BearerAuthorization {
    /// Returns the value of Authorization; `nil` if the token does not have the syntax of a token68.
    package static func value(token: String) -> String? {
        let isToken = token.utf8.allSatisfy { $0.isAlpha || $0.isDigit || "-._~+/=".utf8.contains($0) }
        return isToken && !token.isEmpty ? "Bearer " + token : nil
    }
}

/// Base64 (RFC 4648 §4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                text.append(
                    place <= group.count ? alphabet[Int(bits >> UInt32(18 - 6 * place)) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes complete, padded Base64; `nil` for anything else.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 4) else { return nil }
        let padding = digits.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        for (index, digit) in digits.dropLast(padding).enumerated() {
            guard let value = value(digit) else { return nil }
            bits = bits << 6 | value
            guard index % 4 == 3 else { continue }
            bytes += [
                UInt8(truncatingIfNeeded: bits >> 16), UInt8(truncatingIfNeeded: bits >> 8),
                UInt8(truncatingIfNeeded: bits),
            ]
        }
        if padding == 1 { bytes += [UInt8(truncatingIfNeeded: bits >> 10), UInt8(truncatingIfNeeded: bits >> 2)] }
        if padding == 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> 4)) }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit) - 65
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit) - 71
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit) + 4
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
