// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

/// The fields of an HTTP/2 message in order, including pseudo-header fields, valid or not, with the HPACK
/// representation of each.
///
/// ```swift
/// let fields: HTTP2Fields = [":status": "200", "content-type": "text/plain"]
/// let wrong: HTTP2Fields = ["server": "x", ":status": "200", "Upper": "a\r\nb"]
/// try await peer.send(.headers(stream: 1, wrong.encoded()))
/// fields["content-type"]   // "text/plain"
/// ```
///
/// Nothing is checked or changed; names keep their letter case.
public struct HTTP2Fields: Sendable, Hashable {
    /// The fields, in order.
    public var fields: [Field]

    /// One field.
    public struct Field: Sendable, Hashable {
        /// The name as bytes.
        public var name: [UInt8]
        /// The value as bytes.
        public var value: [UInt8]
        /// The HPACK representation.
        public var form: Form

        /// Creates a field from text, encoded as UTF-8.
        public init(_ name: String, _ value: String, _ form: Form = .withoutIndexing) {
            self.init(name: Array(name.utf8), value: Array(value.utf8), form)
        }

        /// Creates a field from bytes.
        public init(name: [UInt8], value: [UInt8], _ form: Form = .withoutIndexing) {
            self.name = name
            self.value = value
            self.form = form
        }
    }

    /// The literal representations of RFC 7541 §6.2, without Huffman coding.
    public enum Form: Sendable, Hashable {
        /// The decoder adds the field to its table (§6.2.1).
        case indexing
        /// The decoder does not add the field to its table (§6.2.2).
        case withoutIndexing
        /// Neither the decoder nor any intermediary may index the field (§6.2.3).
        case neverIndexed
    }

    /// Creates a list of fields.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// Creates the fields of a response: its status, then the fields with names in lower case.
    public init(_ status: Status, _ headers: Headers = Headers()) {
        self.init([Field(":status", "\(status.code)")] + Self.lowercased(headers))
    }

    /// Creates fields without pseudo-header fields, as for trailers.
    public init(_ headers: Headers) { self.init(Self.lowercased(headers)) }

    private static func lowercased(_ headers: Headers) -> [Field] {
        headers.map { Field($0.name.description.lowercased(), $0.value) }
    }

    /// Returns the first value of that name, which is compared case-sensitively.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// The fields without pseudo-header fields.
    public var headers: Headers {
        var headers = Headers()
        for field in fields where field.name.first != UInt8(ascii: ":") {
            headers.append(
                FieldName(String(decoding: field.name, as: UTF8.self)), String(decoding: field.value, as: UTF8.self))
        }
        return headers
    }

    /// Returns both lists, one after the other.
    public static func + (left: HTTP2Fields, right: HTTP2Fields) -> HTTP2Fields {
        HTTP2Fields(left.fields + right.fields)
    }
}

extension HTTP2Fields: ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// Creates the fields of a literal, in its order; a name may occur several times.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field($0.0, $0.1) })
    }

    /// One line for each field.
    public var description: String {
        fields.map { "\(String(decoding: $0.name, as: UTF8.self)): \(String(decoding: $0.value, as: UTF8.self))" }
            .joined(separator: "\n")
    }
}
