// SPDX-License-Identifier: Apache-2.0

extension Headers: Hashable {
    /// Compares by meaning: for each name the same values in the same order. The order of different names and the
    /// letter case of names are irrelevant (RFC 9110 §5.3).
    public static func == (left: Headers, right: Headers) -> Bool {
        guard left.count == right.count else { return false }
        return left.entries.indices.allSatisfy { index in
            let name = left.name(at: index)
            return left.count(of: name) == right.count(of: name)
                && right.valueBytes(of: name, number: left.rank(of: index, named: name)) == left.valueBytes(at: index)
        }
    }

    /// Hashes the parts that equality compares: a sum over the fields, independent of their order.
    public func hash(into hasher: inout Hasher) {
        var sum = 0
        for index in entries.indices {
            var field = Hasher()
            field.combine(entries[index].digest)
            field.combine(valueBytes(at: index))
            sum &+= field.finalize()
        }
        hasher.combine(sum)
    }

    private func rank(of index: Int, named name: FieldName) -> Int {
        entries[..<index].indices.count { has(name, at: $0) }
    }

    private func valueBytes(at index: Int) -> ArraySlice<UInt8> { bytes[entries[index].valueRange] }

    private func valueBytes(of name: FieldName, number: Int) -> ArraySlice<UInt8>? {
        var left = number
        for index in entries.indices where has(name, at: index) {
            if left == 0 { return valueBytes(at: index) }
            left -= 1
        }
        return nil
    }
}

extension Headers: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line for each field. Credentials, cookies, and the passwords and tokens in URLs are hidden, because
    /// descriptions end up in logs.
    public var description: String {
        map(\.description).joined(separator: "\n")
    }

    /// Same as ``description``.
    public var debugDescription: String { description }

    /// Shows the same as ``description``, so that `dump` reveals no more.
    public var customMirror: Mirror { Mirror(self, children: ["fields": description]) }
}

extension FieldName {
    /// Whether values of this field are hidden in descriptions and logs: see ``Secrets``.
    package var isSecret: Bool { Secrets.hidesField(description) }
}

extension Headers.Field: CustomStringConvertible {
    /// The field as on the wire: `Accept: text/html`. A credential or cookie, and the secrets in a URL, are hidden.
    public var description: String { "\(name): \(name.isSecret ? "<hidden>" : Secrets.hidden(in: value))" }
}
