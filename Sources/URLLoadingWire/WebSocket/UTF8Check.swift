// SPDX-License-Identifier: Apache-2.0

/// Validates UTF-8 that arrives in pieces (RFC 3629), and fails at the first impossible byte.
struct UTF8Check: Sendable {
    /// The number of continuation bytes still required, and the range of the next one.
    private var missing = 0
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// True between characters.
    var isComplete: Bool { missing == 0 }

    mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                // Most text is mostly ASCII.
                while bytes.count - index >= 8,
                    bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
                { index += 8 }
                guard index < bytes.count else { break }
            }
            guard take(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard missing == 0 else {
            guard allowed.contains(byte) else { return false }
            missing -= 1
            allowed = 0x80...0xBF
            return true
        }
        // RFC 3629 §4: no overlong forms, no surrogates, nothing above U+10FFFF.
        switch byte {
        case ...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, allowed) = (2, 0xA0...0xBF)
        case 0xE1...0xEC, 0xEE...0xEF: missing = 2
        case 0xED: (missing, allowed) = (2, 0x80...0x9F)
        case 0xF0: (missing, allowed) = (3, 0x90...0xBF)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, allowed) = (3, 0x80...0x8F)
        default: return false
        }
        return true
    }
}
