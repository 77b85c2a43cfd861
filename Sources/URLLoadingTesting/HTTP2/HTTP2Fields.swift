public import URLLoadingWire

/// The fields of an HTTP/2 message in their order, pseudo-fields among them, legal or not; and how HPACK is to write
/// each.
///
/// ```swift
/// let fields: HTTP2Fields = [":status": "200", "content-type": "text/plain"]
/// let wrong: HTTP2Fields = ["server": "x", ":status": "200", "Upper": "a\r\nb"]
/// try await peer.send(.headers(stream: 1, wrong.encoded()))
/// fields["content-type"]   // "text/plain"
/// ```
///
/// Nothing is checked or changed: names stay in the case they have.
public struct HTTP2Fields: Sendable, Hashable {
    /// The fields, in order.
    public var fields: [Field]

    /// One field.
    public struct Field: Sendable, Hashable {
        /// Its name, as bytes.
        public var name: [UInt8]
        /// Its value, as bytes.
        public var value: [UInt8]
        /// How it is written.
        public var form: Form

        /// A field of texts, taken as their UTF-8.
        public init(_ name: String, _ value: String, _ form: Form = .withoutIndexing) {
            self.init(name: Array(name.utf8), value: Array(value.utf8), form)
        }

        /// A field of bytes.
        public init(name: [UInt8], value: [UInt8], _ form: Form = .withoutIndexing) {
            self.name = name
            self.value = value
            self.form = form
        }
    }

    /// The representations of RFC 7541 6.2; all with name and value in full, without Huffman.
    public enum Form: Sendable, Hashable {
        /// The reader adds it to its table (6.2.1).
        case indexing
        /// It does not (6.2.2).
        case withoutIndexing
        /// Nor does anybody on the way (6.2.3).
        case neverIndexed
    }

    /// These fields.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// A response: its status, then its fields with their names in lower case.
    public init(_ status: Status, _ headers: Headers = Headers()) {
        self.init([Field(":status", "\(status.code)")] + Self.lowercased(headers))
    }

    /// Fields without a pseudo-field, as trailers are.
    public init(_ headers: Headers) { self.init(Self.lowercased(headers)) }

    private static func lowercased(_ headers: Headers) -> [Field] {
        headers.map { Field($0.name.description.lowercased(), $0.value) }
    }

    /// The first value of that name; the case counts.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name.elementsEqual(name.utf8) }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// All fields that are no pseudo-fields.
    public var headers: Headers {
        var headers = Headers()
        for field in fields where field.name.first != UInt8(ascii: ":") {
            headers.append(
                FieldName(String(decoding: field.name, as: UTF8.self)), String(decoding: field.value, as: UTF8.self))
        }
        return headers
    }

    /// These and others.
    public static func + (left: HTTP2Fields, right: HTTP2Fields) -> HTTP2Fields {
        HTTP2Fields(left.fields + right.fields)
    }
}

extension HTTP2Fields: ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// In the order of the literal; a name may come more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field($0.0, $0.1) })
    }

    /// A line for each field.
    public var description: String {
        fields.map { "\(String(decoding: $0.name, as: UTF8.self)): \(String(decoding: $0.value, as: UTF8.self))" }
            .joined(separator: "\n")
    }
}
