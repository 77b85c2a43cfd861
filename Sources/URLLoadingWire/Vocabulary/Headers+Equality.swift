extension Headers: Hashable {
    /// Equal by meaning: the same values in the same order for each name; the order of different
    /// names and the case of names do not matter (RFC 9110 5.3).
    public static func == (left: Headers, right: Headers) -> Bool {
        guard left.count == right.count else { return false }
        return left.entries.indices.allSatisfy { index in
            let name = left.name(at: index)
            return left.count(of: name) == right.count(of: name)
                && right.valueBytes(of: name, number: left.rank(of: index, named: name)) == left.valueBytes(at: index)
        }
    }

    /// Feeds what equality looks at: a sum over the fields, which no order changes.
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
    /// One line for each field. Credentials and cookies are hidden, and so are the passwords and tokens of URLs, since this
    /// ends up in logs.
    public var description: String {
        map { field in
            "\(field.name): \(field.name.isSecret ? "<hidden>" : Secrets.hidden(in: field.value))"
        }.joined(separator: "\n")
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows what ``description`` shows, so that `dump` reveals no more.
    public var customMirror: Mirror { Mirror(self, children: ["fields": description]) }
}

extension FieldName {
    /// Whether values of this field are not shown to people: see ``Secrets``.
    package var isSecret: Bool { Secrets.hidesField(description) }
}
