// SPDX-License-Identifier: Apache-2.0

/// A cookie in the file of FoundationNetworking's `HTTPCookieStorage`: an XML property list with a dictionary of
/// cookies by domain, path and name, each a dictionary of its properties.
///
/// Parsed here, because only a few elements occur: without a stack that nesting could exhaust, and without entities
/// except the five of XML and character references.
package struct FoundationNetworkingCookie: Sendable, Hashable {
    package let name: String
    package let value: String
    /// The domain, with a leading dot if the cookie applies to subdomains.
    package let domain: String
    package let path: String
    /// Seconds since 1970; `nil` for a session cookie.
    package let expires: Double?
    package let isSecure: Bool

    /// Returns the cookies of a file, skipping entries that lack a property; `nil` if it is not such a file.
    package static func cookies(in bytes: some Sequence<UInt8>) -> [FoundationNetworkingCookie]? {
        var scanner = PropertyListScanner(bytes)
        guard scanner.next() == .open("plist"), scanner.next() == .open("dict") else { return nil }
        var cookies: [FoundationNetworkingCookie] = []
        while true {
            switch scanner.next() {
            case .close("dict"):
                return scanner.next() == .close("plist") && scanner.next() == .end ? cookies : nil
            case .open("key"):
                guard scanner.text(of: "key") != nil, let properties = scanner.properties() else { return nil }
                if let cookie = FoundationNetworkingCookie(properties) { cookies.append(cookie) }
            default: return nil
            }
        }
    }

    private init?(_ properties: [String: PropertyListScanner.Value]) {
        guard case .text(let name)? = properties["Name"], case .text(let value)? = properties["Value"],
            case .text(let domain)? = properties["Domain"], case .text(let path)? = properties["Path"]
        else { return nil }
        switch properties["Expires"] {
        case .number(let seconds)?: expires = seconds
        case nil: expires = nil
        default: return nil
        }
        (self.name, self.value, self.domain, self.path) = (name, value, domain, path)
        isSecure = properties["Secure"] == .flag(true)
    }
}

/// Reads the elements of an XML property list in order.
private struct PropertyListScanner {
    enum Token: Equatable {
        case open(String)
        case close(String)
        /// `<true/>`.
        case empty(String)
        case end
        case malformed
    }
    enum Value: Equatable {
        case text(String)
        case number(Double)
        case flag(Bool)
        /// A value of a kind that no cookie property has.
        case other
    }
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Reads the next element, skipping white space, comments and declarations before it.
    mutating func next() -> Token {
        while position < bytes.count {
            if [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) {
                position += 1
            } else if take("<!--") {
                guard skip(behind: "-->") else { return .malformed }
            } else if take("<?") {
                guard skip(behind: "?>") else { return .malformed }
            } else if take("<!DOCTYPE") {
                // FoundationNetworking never writes a document type with internal declarations.
                let start = position
                guard skip(behind: ">"), !bytes[start..<position].contains(UInt8(ascii: "[")) else { return .malformed }
            } else {
                return element()
            }
        }
        return .end
    }

    private mutating func element() -> Token {
        guard take("<") else { return .malformed }
        let closes = take("/")
        let start = position
        guard skip(behind: ">") else { return .malformed }
        var tag = bytes[start..<(position - 1)]
        let isEmpty = !closes && tag.last == UInt8(ascii: "/")
        if isEmpty { tag.removeLast() }
        let name = String(decoding: tag.prefix { $0 != 0x20 }, as: UTF8.self)
        return closes ? .close(name) : isEmpty ? .empty(name) : .open(name)
    }

    /// Reads the text of an element up to its end; `nil` if it contains another element.
    mutating func text(of name: String) -> String? {
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "<") { position += 1 }
        let text = Self.unescaped(bytes[start..<position])
        return next() == .close(name) ? text : nil
    }

    /// Reads the properties of a dictionary; empty if the value is of another kind, `nil` if it is malformed.
    mutating func properties() -> [String: Value]? {
        let token = next()
        guard token == .open("dict") else { return value(token) == nil ? nil : [:] }
        var properties: [String: Value] = [:]
        while true {
            switch next() {
            case .close("dict"): return properties
            case .open("key"):
                guard let key = text(of: "key"), let value = value(next()) else { return nil }
                properties[key] = value
            default: return nil
            }
        }
    }

    private mutating func value(_ token: Token) -> Value? {
        switch token {
        case .empty("true"): return .flag(true)
        case .empty("false"): return .flag(false)
        case .empty("string"): return .text("")
        case .empty: return .other
        case .open("string"): return text(of: "string").map { .text($0) }
        case .open(let name) where name == "real" || name == "integer":
            return text(of: name).map { Double($0).map { .number($0) } ?? .other }
        case .open: return skipContent() ? .other : nil
        case .close, .end, .malformed: return nil
        }
    }

    /// Skips the content and the end of an element whose start was read.
    private mutating func skipContent() -> Bool {
        var level = 1
        while level > 0 {
            while position < bytes.count, bytes[position] != UInt8(ascii: "<") { position += 1 }
            switch next() {
            case .open: level += 1
            case .close: level -= 1
            case .empty: break
            case .end, .malformed: return false
            }
        }
        return true
    }

    private mutating func take(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        for offset in 0..<count where bytes[position + offset] != text.utf8Start[offset] { return false }
        position += count
        return true
    }

    private mutating func skip(behind text: StaticString) -> Bool {
        while position < bytes.count {
            if take(text) { return true }
            position += 1
        }
        return false
    }

    /// Replaces entities by the characters they stand for; leaves unknown ones unchanged.
    private static func unescaped(_ bytes: ArraySlice<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var result = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "&") {
            result += rest[..<start]
            rest = rest[start...]
            guard let end = rest.prefix(12).firstIndex(of: ";"), let scalar = scalar(rest[..<end].dropFirst()) else {
                result.append(rest.removeFirst())
                continue
            }
            result.unicodeScalars.append(scalar)
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    private static func scalar(_ entity: Substring) -> Unicode.Scalar? {
        switch entity {
        case "lt": "<"
        case "gt": ">"
        case "amp": "&"
        case "quot": "\""
        case "apos": "'"
        default:
            if entity.hasPrefix("#x") {
                UInt32(entity.dropFirst(2), radix: 16).flatMap { Unicode.Scalar($0) }
            } else if entity.hasPrefix("#") {
                UInt32(entity.dropFirst()).flatMap { Unicode.Scalar($0) }
            } else {
                nil
            }
        }
    }
}
