// SPDX-License-Identifier: Apache-2.0

/// The parsing algorithms of RFC 9651 §4.2, one function each. A function that returns `nil` may have consumed any
/// amount: the field is invalid.
struct StructuredFieldScanner {
    /// An item, as far as its type is used here.
    enum Item: Equatable {
        case integer(Int64)
        case boolean(Bool)
        case bytes([UInt8])
        case other
    }

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
    mutating func dictionary() -> [String: Item]? {
        var members: [String: Item] = [:]
        while !rest.isEmpty {
            guard let key = key(), let value = take("=") ? itemOrInnerList() : trueWithParameters() else { return nil }
            members[key] = value
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
        guard let item = bareItem(), parameters() else { return nil }
        return item
    }

    private mutating func trueWithParameters() -> Item? { parameters() ? .boolean(true) : nil }

    /// §4.2.1.1 and §4.2.1.2.
    private mutating func itemOrInnerList() -> Item? {
        guard take("(") else { return item() }
        while true {
            skipSpaces()
            if take(")") { return parameters() ? .other : nil }
            guard item() != nil, rest.first == 0x20 || rest.first == UInt8(ascii: ")") else { return nil }
        }
    }

    /// §4.2.3.2.
    private mutating func parameters() -> Bool {
        while take(";") {
            skipSpaces()
            guard key() != nil else { return false }
            if take("="), bareItem() == nil { return false }
        }
        return true
    }

    /// §4.2.3.3.
    private mutating func key() -> String? {
        guard let first = rest.first, first == UInt8(ascii: "*") || isLowercase(first) else { return nil }
        let key = rest.prefix { isLowercase($0) || $0.isDigit || "_-.*".utf8.contains($0) }
        rest = rest.dropFirst(key.count)
        return String(decoding: key, as: UTF8.self)
    }

    /// §4.2.3.1.
    private mutating func bareItem() -> Item? {
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
            if case .integer = number() { return .other }
            return nil
        default: return first.isAlpha || first == UInt8(ascii: "*") ? token() : nil
        }
    }

    /// §4.2.4: up to 15 digits, or up to 12, a point and up to 3.
    private mutating func number() -> Item? {
        let isNegative = take("-")
        let digits = takeDigits()
        guard take(".") else {
            guard digits.count <= 15, let number = Int64(strictDigits: digits) else { return nil }
            return .integer(isNegative ? -number : number)
        }
        return (1...12).contains(digits.count) && (1...3).contains(takeDigits().count) ? .other : nil
    }

    /// §4.2.5.
    private mutating func string() -> Item? {
        rest = rest.dropFirst()
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return .other
            case UInt8(ascii: "\\"): guard take("\"") || take("\\") else { return nil }
            default: guard (0x20..<0x7F).contains(byte) else { return nil }
            }
        }
        return nil
    }

    /// §4.2.6.
    private mutating func token() -> Item? {
        rest = rest.drop { ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
        return .other
    }

    /// §4.2.7: missing padding is added.
    private mutating func byteSequence() -> Item? {
        rest = rest.dropFirst()
        let coded = rest.prefix { $0.isAlpha || $0.isDigit || "+/=".utf8.contains($0) }
        rest = rest.dropFirst(coded.count)
        guard take(":") else { return nil }
        let text = String(decoding: coded, as: UTF8.self)
        let padding = String(repeating: "=", count: (4 - coded.count % 4) % 4)
        return Base64.decode(text + padding).map { .bytes($0) } ?? .other
    }

    /// §4.2.8.
    private mutating func boolean() -> Item? {
        rest = rest.dropFirst()
        if take("1") { return .boolean(true) }
        return take("0") ? .boolean(false) : nil
    }

    /// §4.2.10: percent-encoded UTF-8 with lower-case hexadecimal digits, in quotes.
    private mutating func displayString() -> Item? {
        rest = rest.dropFirst()
        guard take("\"") else { return nil }
        let coded = rest.prefix { $0 != UInt8(ascii: "\"") }
        rest = rest.dropFirst(coded.count)
        let isVisible = coded.allSatisfy { (0x20..<0x7F).contains($0) }
        guard take("\""), isVisible, !Self.hasUppercaseHex(coded), let bytes = PercentCoding.decode(coded),
            String(validating: bytes, as: UTF8.self) != nil
        else { return nil }
        return .other
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
