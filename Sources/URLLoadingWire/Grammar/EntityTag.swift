// SPDX-License-Identifier: Apache-2.0

/// An entity tag, the identifier of one state of a representation (RFC 9110 §8.8.3).
///
/// ```swift
/// let tag = EntityTag(#"W/"1a2b""#)
/// tag?.isWeak                                              // true
/// tag?.matchesWeakly(EntityTag(#""1a2b""#))                // true
/// ```
///
/// Kept as bytes: as text, two different tags could be equal (one in UTF-8, one in Latin-1), and the tag sent back
/// would differ from the one received.
package struct EntityTag: Sendable, Hashable {
    /// The bytes between the quotes.
    package let opaque: [UInt8]
    /// True for a weak tag, which promises equal meaning but not equal bytes: partial responses must not be combined by
    /// it.
    package let isWeak: Bool

    /// Parses an ETag field; `nil` if it violates the grammar, for example without quotes.
    package init?(_ text: String) {
        self.init(Array(text.utf8)[...])
    }

    /// Reads the only ETag of a message; `nil` if there is none, or several, or if it violates the grammar.
    package init?(in headers: Headers) {
        guard headers.count(of: .etag) == 1, let bytes = headers.withValueBytes(of: .etag, { Array($0) }) else {
            return nil
        }
        self.init(bytes[...])
    }

    /// Parses the bytes of an ETag field; `nil` if they violate the grammar.
    package init?(_ text: ArraySlice<UInt8>) {
        // RFC 9110 §8.8.3: the "W" is case-sensitive.
        isWeak = text.starts(with: "W/".utf8)
        let quoted = isWeak ? text.dropFirst(2) : text
        guard quoted.count >= 2, quoted.first == UInt8(ascii: "\""), quoted.last == UInt8(ascii: "\"") else {
            return nil
        }
        let opaque = quoted.dropFirst().dropLast()
        guard opaque.allSatisfy(Self.isTagCharacter) else { return nil }
        self.opaque = Array(opaque)
    }

    /// Returns whether a byte is an `etagc`: no quote, blank or control character. Tags have no escaping.
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != UInt8(ascii: "\"") && byte != 0x7F
    }

    /// Returns whether both tags are strong and equal, so that the content is the same byte for byte (RFC 9110
    /// §8.8.3.2): required for If-Range and If-Match.
    package func matchesStrongly(_ other: EntityTag?) -> Bool {
        guard let other else { return false }
        return !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Returns whether the tags are equal apart from weakness (RFC 9110 §8.8.3.2): sufficient for If-None-Match.
    package func matchesWeakly(_ other: EntityTag?) -> Bool { opaque == other?.opaque }

    /// The bytes as sent, including the quotes.
    package var fieldValue: [UInt8] {
        Array((isWeak ? "W/\"" : "\"").utf8) + opaque + [UInt8(ascii: "\"")]
    }

    /// Adds the tag to a message byte for byte, as in `tag.append(to: &headers, as: .ifRange)`.
    package func append(to headers: inout Headers, as name: FieldName) {
        var name = name.description
        name.withUTF8 { name in
            fieldValue.withUnsafeBytes { headers.appendRaw(name: UnsafeRawBufferPointer(name), value: $0) }
        }
    }
}

extension EntityTag: CustomStringConvertible {
    /// The tag as text, for display.
    package var description: String { fieldValue.withUnsafeBytes { $0.text(0..<$0.count) } }
}
