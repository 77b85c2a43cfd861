// SPDX-License-Identifier: Apache-2.0

/// The parsing algorithms of RFC 9651 §4.2, one function each. A function that returns `nil` may have consumed any
/// amount: the field is invalid.
struct StructuredFieldScanner {
    typealias BareItem = StructuredField.BareItem
    typealias Item = StructuredField.Item

    private var rest: ArraySlice<UInt8>

    init(_ text: String) { rest = Array(text.utf8)[...] }

    /// §4.2: spaces around the value, and nothing else.
    mutating func whole<Value>(_ parse: (inout StructuredFieldScanner) -> Value?) -> Value? {
        skipSpaces()
        guard let value = parse(&self) else { return nil }
        skipSpaces()
        return rest.isEmpty ? value : nil
    }

    /// §4.2.2.
    mutating func dictionary() -> [StructuredField.Entry]? {
        var entries: [StructuredField.Entry] = []
        // By key, because a field may have thousands of members.
        var places: [String: Int] = [:]
        while !rest.isEmpty {
            guard let key = key(), let value = take("=") ? itemOrInnerList() : trueWithParameters() else { return nil }
            if let place = places[key] {
                entries[place].member = value
            } else {
                places[key] = entries.count
                entries.append(StructuredField.Entry(key, value))
            }
            skipBlanks()
            if rest.isEmpty { return entries }
            guard take(",") else { return nil }
            skipBlanks()
            if rest.isEmpty { return nil }
        }
        return entries
    }

    /// §4.2.1.
    mutating func list() -> [StructuredField.Member]? {
        var members: [StructuredField.Member] = []
        while !rest.isEmpty {
            guard let member = itemOrInnerList() else { return nil }
            members.append(member)
            skipBlanks()
            if rest.isEmpty { return members }
            guard take(",") else { return nil }
            skipBlanks()
            if rest.isEmpty { return nil }
        }
        return members
    }

    /// §4.2.3.
    mutating func item() -> Item? {
        guard let value = bareItem(), let parameters = parameters() else { return nil }
        return Item(value, parameters)
    }

    private mutating func trueWithParameters() -> StructuredField.Member? {
        parameters().map { .item(Item(.boolean(true), $0)) }
    }

    /// §4.2.1.1 and §4.2.1.2.
    private mutating func itemOrInnerList() -> StructuredField.Member? {
        guard take("(") else { return item().map { .item($0) } }
        var items: [Item] = []
        while true {
            skipSpaces()
            if take(")") { return parameters().map { .list(StructuredField.InnerList(items, $0)) } }
            guard let item = item(), rest.first == 0x20 || rest.first == UInt8(ascii: ")") else { return nil }
            items.append(item)
        }
    }

    /// §4.2.3.2: the last of equal keys counts, at the place of the first.
    private mutating func parameters() -> [StructuredField.Parameter]? {
        var parameters: [StructuredField.Parameter] = []
        var places: [String: Int] = [:]
        while take(";") {
            skipSpaces()
            guard let key = key() else { return nil }
            var value = BareItem.boolean(true)
            if take("=") {
                guard let given = bareItem() else { return nil }
                value = given
            }
            let parameter = StructuredField.Parameter(key, value)
            if let place = places[key] {
                parameters[place] = parameter
            } else {
                places[key] = parameters.count
                parameters.append(parameter)
            }
        }
        return parameters
    }

    /// §4.2.3.3.
    private mutating func key() -> String? {
        guard let first = rest.first, first == UInt8(ascii: "*") || isLowercase(first) else { return nil }
        let key = rest.prefix { isLowercase($0) || $0.isDigit || "_-.*".utf8.contains($0) }
        rest = rest.dropFirst(key.count)
        return String(decoding: key, as: UTF8.self)
    }

    /// §4.2.3.1.
    private mutating func bareItem() -> BareItem? {
        guard let first = rest.first else { return nil }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: ":"): return byteSequence()
        case UInt8(ascii: "?"): return boolean()
        case UInt8(ascii: "%"): return displayString()
        case UInt8(ascii: "@"):
            rest = rest.dropFirst()
            // §4.2.9: a date is a whole number of seconds.
            if case .integer(let seconds) = number() { return .date(seconds) }
            return nil
        default: return first.isAlpha || first == UInt8(ascii: "*") ? token() : nil
        }
    }

    /// §4.2.4: up to 15 digits, or up to 12, a point and up to 3.
    private mutating func number() -> BareItem? {
        let isNegative = take("-")
        let digits = takeDigits()
        guard take(".") else {
            guard digits.count <= 15, let number = Int64(strictDigits: digits) else { return nil }
            return .integer(isNegative ? -number : number)
        }
        let fraction = takeDigits()
        guard (1...12).contains(digits.count), (1...3).contains(fraction.count) else { return nil }
        let zeros = repeatElement(UInt8(ascii: "0"), count: 3 - fraction.count)
        guard let number = Int64(strictDigits: ArraySlice(digits + fraction + zeros)) else { return nil }
        return .decimal(isNegative ? -number : number)
    }

    /// §4.2.5.
    private mutating func string() -> BareItem? {
        rest = rest.dropFirst()
        var text: [UInt8] = []
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return .string(String(decoding: text, as: UTF8.self)) }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = rest.popFirst(), "\"\\".utf8.contains(escaped) else { return nil }
                byte = escaped
            }
            guard (0x20..<0x7F).contains(byte) else { return nil }
            text.append(byte)
        }
        return nil
    }

    /// §4.2.6.
    private mutating func token() -> BareItem? {
        let token = rest.prefix(while: Self.isOfToken)
        rest = rest.dropFirst(token.count)
        return .token(String(decoding: token, as: UTF8.self))
    }

    static func isOfToken(_ byte: UInt8) -> Bool {
        ByteSet.token.contains(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/")
    }

    /// §4.2.7: missing padding is added.
    private mutating func byteSequence() -> BareItem? {
        rest = rest.dropFirst()
        let coded = rest.prefix { $0.isAlpha || $0.isDigit || "+/=".utf8.contains($0) }
        rest = rest.dropFirst(coded.count)
        guard take(":") else { return nil }
        let text = String(decoding: coded, as: UTF8.self)
        let padding = String(repeating: "=", count: (4 - coded.count % 4) % 4)
        return Base64.decode(text + padding).map { .bytes($0) } ?? .undecodable
    }

    /// §4.2.8.
    private mutating func boolean() -> BareItem? {
        rest = rest.dropFirst()
        if take("1") { return .boolean(true) }
        return take("0") ? .boolean(false) : nil
    }

    /// §4.2.10: percent-encoded UTF-8 with lower-case hexadecimal digits, in quotes.
    private mutating func displayString() -> BareItem? {
        rest = rest.dropFirst()
        guard take("\"") else { return nil }
        let coded = rest.prefix { $0 != UInt8(ascii: "\"") }
        rest = rest.dropFirst(coded.count)
        let isVisible = coded.allSatisfy { (0x20..<0x7F).contains($0) }
        guard take("\""), isVisible, !Self.hasUppercaseHex(coded), let bytes = PercentCoding.decode(coded),
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        return .displayString(text)
    }

    private static func hasUppercaseHex(_ coded: ArraySlice<UInt8>) -> Bool {
        coded.indices.contains {
            coded[$0] == UInt8(ascii: "%") && coded[$0...].dropFirst().prefix(2).contains { $0 != $0.lowered }
        }
    }

    private func isLowercase(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func takeDigits() -> ArraySlice<UInt8> {
        let digits = rest.prefix(while: \.isDigit)
        rest = rest.dropFirst(digits.count)
        return digits
    }

    private mutating func skipSpaces() { rest = rest.drop { $0 == 0x20 } }
    private mutating func skipBlanks() { rest = rest.drop(while: \.isBlank) }
}
