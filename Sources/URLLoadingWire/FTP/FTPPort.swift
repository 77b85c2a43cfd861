// SPDX-License-Identifier: Apache-2.0

/// The port on which a server listens for the data connection.
enum FTPPort {
    /// Parses the 229 reply to EPSV (RFC 2428 §3): `(|||6446|)`, with any delimiter.
    static func extended(_ text: String) -> UInt16? {
        let bytes = Array(text.utf8)
        guard let open = bytes.lastIndex(of: UInt8(ascii: "(")), bytes.count > open + 5 else { return nil }
        let delimiter = bytes[open + 1]
        guard 33...126 ~= delimiter, !delimiter.isDigit, bytes[open + 2] == delimiter, bytes[open + 3] == delimiter
        else { return nil }
        let digits = bytes[(open + 4)...].prefix { $0.isDigit }
        guard digits.endIndex + 1 < bytes.count, bytes[digits.endIndex] == delimiter,
            bytes[digits.endIndex + 1] == UInt8(ascii: ")")
        else { return nil }
        return port(digits)
    }

    /// Parses the 227 reply to PASV (RFC 959, RFC 1123 §4.1.2.6): six numbers anywhere in the text. The address among
    /// them is never used: the data connection goes to the peer of the control connection, so that a server cannot
    /// direct it elsewhere.
    static func passive(_ text: String) -> UInt16? {
        var numbers: [Int] = []
        for part in text.utf8.split(whereSeparator: { !($0.isDigit || $0 == UInt8(ascii: ",")) })
        where part.contains(UInt8(ascii: ",")) {
            let fields = part.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            guard fields.count == 6, fields.allSatisfy({ 1...3 ~= $0.count }) else { continue }
            numbers = fields.compactMap { Int(String(decoding: $0, as: UTF8.self)) }
            break
        }
        guard numbers.count == 6, numbers.allSatisfy({ 0...255 ~= $0 }) else { return nil }
        let port = numbers[4] << 8 | numbers[5]
        return port == 0 ? nil : UInt16(port)
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard 1...5 ~= digits.count, let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0 else {
            return nil
        }
        return port
    }
}
