/// What names one state of a representation (RFC 9110 8.8.3).
///
/// ```swift
/// let tag = EntityTag(#"W/"1a2b""#)
/// tag?.isWeak                                              // true
/// tag?.matchesWeakly(EntityTag(#""1a2b""#))                // true
/// ```
///
/// It is kept as bytes: as text, two different tags can be equal (one in UTF-8, one in Latin-1), and
/// what is sent back would not be what was received.
package struct EntityTag: Sendable, Hashable {
    /// What lies between the quotes.
    package let opaque: [UInt8]
    /// Equal meaning is promised, equal bytes are not: of no use to put parts together.
    package let isWeak: Bool

    /// The value of an ETag field; `nil` if it is not in the grammar, as one without quotes.
    package init?(_ text: String) {
        self.init(Array(text.utf8)[...])
    }

    /// The one ETag of a message; `nil` if there is none, or several, or it is not in the grammar.
    package init?(in headers: Headers) {
        guard headers.count(of: .etag) == 1, let bytes = headers.withValueBytes(of: .etag, { Array($0) }) else {
            return nil
        }
        self.init(bytes[...])
    }

    /// The bytes of an ETag field's value; `nil` if it is not in the grammar.
    package init?(_ text: ArraySlice<UInt8>) {
        // RFC 9110 8.8.3: the "W" has its case.
        isWeak = text.starts(with: "W/".utf8)
        let quoted = isWeak ? text.dropFirst(2) : text
        guard quoted.count >= 2, quoted.first == UInt8(ascii: "\""), quoted.last == UInt8(ascii: "\"") else {
            return nil
        }
        let opaque = quoted.dropFirst().dropLast()
        guard opaque.allSatisfy(Self.isTagCharacter) else { return nil }
        self.opaque = Array(opaque)
    }

    /// `etagc`: no quote, no blank, no control character. There is no escaping in a tag.
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != UInt8(ascii: "\"") && byte != 0x7F
    }

    /// Byte for byte the same content (RFC 9110 8.8.3.2): needed for If-Range and If-Match.
    package func matchesStrongly(_ other: EntityTag?) -> Bool {
        guard let other else { return false }
        return !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// As good as the same content (RFC 9110 8.8.3.2): enough for If-None-Match.
    package func matchesWeakly(_ other: EntityTag?) -> Bool { opaque == other?.opaque }

    /// The bytes as they are sent, quotes and all.
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
    /// The tag as text, for people.
    package var description: String { fieldValue.withUnsafeBytes { $0.text(0..<$0.count) } }
}

/// What If-Match or If-None-Match ask for (RFC 9110 13.1.1, 13.1.2).
package enum EntityTagCondition: Sendable, Hashable {
    /// `*`: whatever there is.
    case any
    /// One of these.
    case tags([EntityTag])

    /// The value of either field; `nil` if it is not in the grammar.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        if bytes.elementsEqual("*".utf8) {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        var position = 0
        while position < bytes.count {
            if bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") {
                position += 1
                continue
            }
            guard let end = Self.endOfTag(bytes, position), let tag = EntityTag(bytes[position..<end]) else {
                return nil
            }
            tags.append(tag)
            position = end
            while position < bytes.count, bytes[position].isBlank { position += 1 }
            guard position == bytes.count || bytes[position] == UInt8(ascii: ",") else { return nil }
        }
        guard !tags.isEmpty else { return nil }
        self = .tags(tags)
    }

    /// A tag may hold a comma, so that the list is cut by quotes.
    private static func endOfTag(_ bytes: [UInt8], _ start: Int) -> Int? {
        let quote = UInt8(ascii: "\"")
        guard let opening = bytes[start...].firstIndex(of: quote),
            let closing = bytes[(opening + 1)...].firstIndex(of: quote)
        else { return nil }
        return closing + 1
    }
}
