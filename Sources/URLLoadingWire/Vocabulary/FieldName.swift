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
        digest = name.utf8.reduce(into: FieldDigest()) { $0.add($1) }.value
    }

    /// Creates a name from a literal. Never traps, whatever the literal contains.
    public init(stringLiteral name: String) { self.init(name) }

    /// Whether the name is a token (RFC 9110 5.1), so that it can be sent.
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

/// A hash that distinguishes most names before their bytes are compared. Bit 5 is set in every byte, so that letter
/// case does not matter. There is no table of digests, so collisions cannot be used for an attack.
struct FieldDigest {
    var value: UInt32 = 0

    @inline(__always)
    mutating func add(_ byte: UInt8) {
        value = value &* 31 &+ UInt32(byte | 0x20)
    }
}
