// SPDX-License-Identifier: Apache-2.0

// Represents bytes as lines of text that survive editors, version control and manual edits; every byte can be restored.

import FoundationEssentials

enum EscapedText {
    /// Returns the bytes of one line, without a line feed, as text: invalid UTF-8, control characters and trailing
    /// blanks are escaped.
    /// - Parameter alsoEscaping: further bytes that have a meaning in the line.
    static func line(_ bytes: some Collection<UInt8>, alsoEscaping more: Set<UInt8> = []) -> (
        text: String, escaped: Int
    ) {
        var text = ""
        var escaped = 0
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            var parser = Unicode.UTF8.ForwardParser()
            var iterator = rest.makeIterator()
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar):
                let isLast = scalar.count == rest.count
                escaped += put(Unicode.UTF8.decode(scalar), &text, isLast: isLast, more)
                rest = rest.dropFirst(scalar.count)
            case .error(let length):
                for byte in rest.prefix(length) { text += hex(byte) }
                escaped += length
                rest = rest.dropFirst(length)
            case .emptyInput: rest = []
            }
        }
        return (text, escaped)
    }

    private static func put(_ scalar: Unicode.Scalar, _ text: inout String, isLast: Bool, _ more: Set<UInt8>) -> Int {
        switch scalar {
        case "\\": text += "\\\\"
        case "\r": text += "\\r"
        case "\n": text += "\\n"
        case "\t" where isLast: text += "\\t"
        case " " where isLast: text += "\\s"
        case _ where scalar.value < 0x20 && scalar != "\t" || scalar.value == 0x7F:
            text += hex(UInt8(scalar.value))
            return 1
        case _ where scalar.isASCII && more.contains(UInt8(scalar.value)): text += hex(UInt8(scalar.value))
        default: text.unicodeScalars.append(scalar)
        }
        return 0
    }

    private static func hex(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16)
        return digits.utf8.count == 1 ? "\\x0\(digits)" : "\\x\(digits)"
    }

    /// Returns the bytes that a text stands for; `nil` if it contains an invalid escape.
    static func bytes(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var iterator = text.makeIterator()
        while let byte = iterator.next() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch iterator.next() {
            case UInt8(ascii: "\\"): bytes.append(byte)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "s"): bytes.append(0x20)
            case UInt8(ascii: "x"):
                guard let high = iterator.next(), let low = iterator.next(),
                    let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(value)
            default: return nil
            }
        }
        return bytes
    }

    // MARK: Bodies

    /// Returns the lines that represent a body: `|` before a line of text, `+` before a line without a final line feed,
    /// `=` before Base64 of binary data.
    static func content(_ bytes: [UInt8]) -> [String] {
        var lines: [String] = []
        var escaped = 0
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let (text, count) = Self.line(line)
            escaped += count
            lines.append(text)
        }
        // A few escaped bytes still count as text, for example where a character was cut.
        guard escaped <= 6 || escaped * 8 <= bytes.count else { return base64(bytes) }
        let last = lines.removeLast()
        return lines.map { $0.isEmpty ? "|" : "| \($0)" } + (last.isEmpty ? [] : ["+ \(last)"])
    }

    private static func base64(_ bytes: [UInt8]) -> [String] {
        // 57 bytes yield a line of 76 characters (RFC 2045 §6.8).
        stride(from: 0, to: bytes.count, by: 57).map { start in
            "= " + Data(bytes[start..<min(start + 57, bytes.count)]).base64EncodedString()
        }
    }

    /// Returns the bytes that such a line stands for, given without its mark; `nil` if it is damaged.
    static func content(mark: UInt8, _ text: ArraySlice<UInt8>) -> [UInt8]? {
        switch mark {
        case UInt8(ascii: "|"): bytes(text).map { $0 + [0x0A] }
        case UInt8(ascii: "+"): bytes(text)
        default: Data(base64Encoded: Data(text)).map { [UInt8]($0) }
        }
    }
}
