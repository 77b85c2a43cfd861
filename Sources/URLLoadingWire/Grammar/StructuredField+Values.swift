// SPDX-License-Identifier: Apache-2.0

// The values of structured fields, and how they are written (RFC 9651 §3, §4.1).

extension StructuredField {
    /// A bare item (§3.3).
    package enum BareItem: Sendable, Hashable {
        case integer(Int64)
        /// A decimal, in thousandths.
        case decimal(Int64)
        case string(String)
        case token(String)
        case bytes([UInt8])
        case boolean(Bool)
        /// Seconds since 1970.
        case date(Int64)
        case displayString(String)
        /// A byte sequence of the right characters that is not Base64.
        case undecodable
    }

    /// A parameter of an item or an inner list (§3.1.2).
    package struct Parameter: Sendable, Hashable {
        package let key: String
        package let value: BareItem

        package init(_ key: String, _ value: BareItem = .boolean(true)) { (self.key, self.value) = (key, value) }
    }

    /// An item with its parameters (§3.3).
    package struct Item: Sendable, Hashable {
        package let value: BareItem
        package var parameters: [Parameter]

        package init(_ value: BareItem, _ parameters: [Parameter] = []) {
            (self.value, self.parameters) = (value, parameters)
        }
    }

    /// An inner list with its parameters (§3.1.1).
    package struct InnerList: Sendable, Hashable {
        package var items: [Item]
        package var parameters: [Parameter]

        package init(_ items: [Item], _ parameters: [Parameter] = []) {
            (self.items, self.parameters) = (items, parameters)
        }
    }

    /// The value of a member of a dictionary (§3.2).
    package enum Member: Sendable, Hashable {
        case item(Item)
        case list(InnerList)
    }

    /// A member of a dictionary.
    package struct Entry: Sendable, Hashable {
        package let key: String
        package var member: Member

        package init(_ key: String, _ member: Member) { (self.key, self.member) = (key, member) }
    }

    /// Parses a dictionary. Each key appears once, at the place of its first member, with the value of its last. An
    /// empty field is an empty dictionary.
    package static func dictionary(_ text: String) -> [Entry]? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.dictionary() }
    }

    /// Parses a list. An empty field is an empty list.
    package static func list(_ text: String) -> [Member]? {
        var scanner = StructuredFieldScanner(text)
        return scanner.whole { $0.list() }
    }

    // MARK: Writing

    /// Returns a dictionary as sent (§4.1.2); `nil` if a value cannot be written.
    package static func text(_ dictionary: [Entry]) -> String? {
        var members: [String] = []
        for entry in dictionary {
            if case .item(let item) = entry.member, item.value == .boolean(true) {
                guard let parameters = text(item.parameters) else { return nil }
                members.append(entry.key + parameters)
            } else {
                guard let value = text(entry.member) else { return nil }
                members.append("\(entry.key)=\(value)")
            }
        }
        return members.joined(separator: ", ")
    }

    /// Returns the value of a member as sent.
    package static func text(_ member: Member) -> String? {
        switch member {
        case .item(let item): text(item)
        case .list(let list): text(list)
        }
    }

    /// Returns an inner list as sent (§4.1.1.1).
    package static func text(_ list: InnerList) -> String? {
        var items: [String] = []
        for item in list.items {
            guard let item = text(item) else { return nil }
            items.append(item)
        }
        return text(list.parameters).map { "(\(items.joined(separator: " ")))\($0)" }
    }

    /// Returns an item as sent (§4.1.3).
    package static func text(_ item: Item) -> String? {
        guard let value = text(item.value), let parameters = text(item.parameters) else { return nil }
        return value + parameters
    }

    private static func text(_ parameters: [Parameter]) -> String? {
        var text = ""
        for parameter in parameters {
            text += ";\(parameter.key)"
            guard parameter.value != .boolean(true) else { continue }
            guard let value = Self.text(parameter.value) else { return nil }
            text += "=\(value)"
        }
        return text
    }

    /// Returns a bare item as sent (§4.1.4 to §4.1.11); `nil` for a number beyond its limits, and for a string or a
    /// token with other characters than its type has.
    package static func text(_ item: BareItem) -> String? {
        switch item {
        case .integer(let number): text(number)
        case .decimal(let thousandths): decimal(thousandths)
        case .string(let string): quoted(string)
        case .token(let token): isToken(token) ? token : nil
        case .bytes(let bytes): text(bytes)
        case .boolean(let flag): text(flag)
        case .date(let seconds): text(seconds).map { "@\($0)" }
        case .displayString(let string): displayed(string)
        case .undecodable: nil
        }
    }

    private static func decimal(_ thousandths: Int64) -> String? {
        guard (-largestInteger...largestInteger).contains(thousandths) else { return nil }
        let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        var digits = String("\(1000 + fraction)".dropFirst())
        while digits.count > 1, digits.hasSuffix("0") { digits.removeLast() }
        return "\(thousandths < 0 ? "-" : "")\(whole).\(digits)"
    }

    private static func quoted(_ string: String) -> String? {
        guard string.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return nil }
        return "\"\(string.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }

    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first, first.isAlpha || first == UInt8(ascii: "*") else { return false }
        return text.utf8.allSatisfy(StructuredFieldScanner.isOfToken)
    }

    private static func displayed(_ string: String) -> String {
        var text: [UInt8] = Array("%\"".utf8)
        for byte in string.utf8 {
            if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "\"") || !(0x20..<0x7F).contains(byte) {
                text += [UInt8(ascii: "%"), UInt8.upperHex(byte >> 4).lowered, UInt8.upperHex(byte & 15).lowered]
            } else {
                text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self) + "\""
    }
}
