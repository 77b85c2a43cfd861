// SPDX-License-Identifier: Apache-2.0

/// The name of a header field: keeps its letter case, and compares case-insensitively.
///
/// ```swift
/// let name: FieldName = "X-Trace"
/// name == FieldName("x-trace")   // true
/// name.description               // "X-Trace"
/// ```
///
/// Any text can be stored; a name that is not a token (RFC 9110 §5.1) is refused when the message is sent.
public struct FieldName: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name in its original letter case.
    public let description: String
    let digest: UInt32

    /// Creates a name of any text; see ``isValid``.
    public init(_ name: String) {
        description = name
        var name = name
        digest = name.withUTF8 { FieldDigest.of(UnsafeRawBufferPointer($0)) }
    }

    /// Creates a name from a literal. Never traps, whatever the literal contains.
    public init(stringLiteral name: String) { self.init(name) }

    /// Whether the name is a token (RFC 9110 §5.1), so that it can be sent.
    public var isValid: Bool {
        !description.isEmpty && description.utf8.allSatisfy { ByteSet.token.contains($0) }
    }

    /// Names are equal if they match byte by byte, ignoring the case of ASCII letters.
    public static func == (left: FieldName, right: FieldName) -> Bool {
        left.digest == right.digest && left.description.utf8.count == right.description.utf8.count
            && left.description.utf8.elementsEqual(right.description.utf8) { $0.lowered == $1.lowered }
    }

    /// Hashes the parts of the name that equality compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}

/// A hash that distinguishes most names before their bytes are compared: of the first and the last eight bytes. Bit 5
/// is set in every byte, so that letter case does not matter. There is no table of digests, so collisions cannot be
/// used for an attack.
enum FieldDigest {
    @inline(__always)
    static func of(_ name: UnsafeRawBufferPointer) -> UInt32 {
        let count = name.count
        var (first, last) = (UInt64(0), UInt64(0))
        if count >= 8 {
            first = name.loadUnaligned(as: UInt64.self)
            last = name.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        } else if count >= 4 {
            first = UInt64(name.loadUnaligned(as: UInt32.self))
            last = UInt64(name.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
        } else if count > 0 {
            first = UInt64(name[0]) | UInt64(name[count &>> 1]) &<< 8 | UInt64(name[count &- 1]) &<< 16
        }
        let lowered: UInt64 = 0x2020_2020_2020_2020
        let mixed =
            (first | lowered) &* 0x9E37_79B9_7F4A_7C15 ^ (last | lowered) &* 0xC2B2_AE3D_27D4_EB4F
            ^ UInt64(truncatingIfNeeded: count) &* 0x1656_67B1_9E37_79F9
        return UInt32(truncatingIfNeeded: mixed &>> 32)
    }
}
