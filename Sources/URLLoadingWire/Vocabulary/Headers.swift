// SPDX-License-Identifier: Apache-2.0

// In this folder: the basic types of HTTP: fields, methods, statuses, hosts, dates (19 files: one type each)

/// Header or trailer fields in their original order and letter case, including duplicates (RFC 9110 §5).
///
/// ```swift
/// var fields: Headers = [.accept: "text/html", "X-Trace": "1"]
/// fields.append(.accept, "text/plain")
/// fields[.accept]              // "text/html, text/plain"
/// fields.values(of: .accept)   // ["text/html", "text/plain"]
/// fields[.accept] = nil
/// ```
///
/// A value is stored as bytes without blanks at its ends. As a `String` it is decoded as UTF-8 if valid, as Latin-1
/// otherwise; a `String` that is set is sent as UTF-8. Nothing is checked here: a name or value that HTTP forbids is
/// refused when the message is sent.
///
/// Values are not parsed: see ``MediaType`` and ``HTTPDate``.
public struct Headers: Sendable {
    /// One field, as `String`s.
    public struct Field: Sendable, Hashable {
        /// The name.
        public var name: FieldName
        /// The value, without blanks at its ends.
        public var value: String

        /// Creates a field from a name and a value.
        public init(name: FieldName, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The position of a field in `bytes`. Deliberately small: a received head is one block of bytes and one block of
    /// entries.
    struct Entry: Sendable {
        var name: Int32
        var nameLength: Int32
        var value: Int32
        var valueLength: Int32
        var digest: UInt32
    }

    var bytes: [UInt8] = []
    var entries: [Entry] = []
    /// True if a field exceeded the 2 GiB that entries can address; such fields are never sent.
    var isOverfull = false

    /// Creates an empty collection.
    public init() {}

    /// The values of `name`, joined with ", " (RFC 9110 §5.3), for Cookie with "; " (RFC 9113 §8.2.3). For Set-Cookie,
    /// whose values cannot be joined, only the first. `nil` without such a field.
    ///
    /// Setting a value replaces all fields of that name with one, at the place of the first; setting `nil` removes
    /// them.
    public subscript(_ name: FieldName) -> String? {
        get {
            guard let first = index(of: name, from: 0) else { return nil }
            guard name != .setCookie, let second = index(of: name, from: first + 1) else {
                return value(at: first)
            }
            let separator = name == .cookie ? "; " : ", "
            return entries.indices[second...].reduce(into: value(at: first)) { text, index in
                if has(name, at: index) { text += separator + value(at: index) }
            }
        }
        set {
            guard let newValue else { return remove(name) }
            replace(name, with: newValue)
        }
    }

    /// Returns the values of `name`, one for each field, in order.
    public func values(of name: FieldName) -> [String] {
        entries.indices.filter { has(name, at: $0) }.map { value(at: $0) }
    }

    /// Returns whether there is a field of that name.
    public func contains(_ name: FieldName) -> Bool { index(of: name, from: 0) != nil }

    /// Appends a field. Blanks at the ends of `value` are removed (RFC 9110 §5.5).
    public mutating func append(_ name: FieldName, _ value: String) {
        var name = name.description
        var value = value
        name.withUTF8 { name in
            value.withUTF8 { appendRaw(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) }
        }
    }

    /// Removes every field of that name.
    public mutating func remove(_ name: FieldName) {
        guard contains(name) else { return }
        rebuild { $0.digest == name.digest && $1 == name }
    }

    private mutating func replace(_ name: FieldName, with value: String) {
        guard contains(name) else { return append(name, value) }
        var replaced = false
        let old = self
        self = Headers()
        for index in old.entries.indices {
            if !old.has(name, at: index) {
                old.copyField(at: index, to: &self)
            } else if !replaced {
                append(name, value)
                replaced = true
            }
        }
    }

    private mutating func rebuild(leavingOut isUnwanted: (Entry, FieldName) -> Bool) {
        let old = self
        self = Headers()
        for index in old.entries.indices where !isUnwanted(old.entries[index], old.name(at: index)) {
            old.copyField(at: index, to: &self)
        }
    }
}

extension Headers: RandomAccessCollection {
    /// The index of the first field.
    public var startIndex: Int { 0 }
    /// One past the last field.
    public var endIndex: Int { entries.count }
    /// The field at a position.
    public subscript(position: Int) -> Field {
        Field(name: name(at: position), value: value(at: position))
    }
}

extension Headers: ExpressibleByDictionaryLiteral {
    /// Creates the fields of a literal, in its order; a name may appear several times.
    public init(dictionaryLiteral elements: (FieldName, String)...) {
        for (name, value) in elements { append(name, value) }
    }
}
