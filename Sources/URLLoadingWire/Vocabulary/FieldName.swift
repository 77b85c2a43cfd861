/// The name of a header field: keeps the case it was written in, and does not care about it.
///
/// ```swift
/// let name: FieldName = "X-Trace"
/// name == FieldName("x-trace")   // true
/// name.description               // "X-Trace"
/// ```
///
/// Any text can be held; a name that is no token (RFC 9110 5.1) is refused when it is written.
public struct FieldName: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name in the case it was given.
    public let description: String
    let digest: UInt32

    /// A name of any text; see ``isValid``.
    public init(_ name: String) {
        description = name
        digest = name.utf8.reduce(into: FieldDigest()) { $0.add($1) }.value
    }

    /// A name of a literal. Never traps, whatever the literal says.
    public init(stringLiteral name: String) { self.init(name) }

    /// Whether the name is a token (RFC 9110 5.1), so that it can be sent.
    public var isValid: Bool {
        !description.isEmpty && description.utf8.allSatisfy { ByteSet.token.contains($0) }
    }

    /// Equal when the ASCII letters are, whatever their case; other characters byte by byte.
    public static func == (left: FieldName, right: FieldName) -> Bool {
        left.digest == right.digest && left.description.utf8.count == right.description.utf8.count
            && left.description.utf8.elementsEqual(right.description.utf8) { $0.lowered == $1.lowered }
    }

    /// Feeds what equality looks at.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}

/// Tells most different names apart before their bytes are compared. Bit 5 is set in every byte, so
/// that case does not matter; nothing is stored by digest, hence nothing to flood.
struct FieldDigest {
    var value: UInt32 = 0

    @inline(__always)
    mutating func add(_ byte: UInt8) {
        value = value &* 31 &+ UInt32(byte | 0x20)
    }
}
