// SPDX-License-Identifier: Apache-2.0

// Hides secrets in the text of a body. They are found by their names, as in URLs (docs/guides/metrics.md): members of
// JSON, fields of forms, attributes, and inputs of HTML.

import URLLoadingWire

struct SecretText {
    private let bytes: [UInt8]
    private var shown: [UInt8] = []
    private var index = 0
    /// True inside an HTML tag whose name attribute is the name of a secret: its value attribute is hidden.
    private var hidesValue = false

    static func hidden(inBody text: String) -> String {
        var scanner = SecretText(bytes: Array(Secrets.hidden(in: text).utf8))
        scanner.scan()
        return String(decoding: scanner.shown, as: UTF8.self)
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private mutating func scan() {
        shown.reserveCapacity(bytes.count)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "<"):
                hidesValue = namesSecret(bytes[index...].prefix { $0 != UInt8(ascii: ">") })
                pass()
            case UInt8(ascii: ">"):
                hidesValue = false
                pass()
            case UInt8(ascii: "\""): if !hideMember() { pass() }
            case UInt8(ascii: "="):
                let name = Self.nameAtEnd(shown[...])
                pass()
                if Self.isSecret(name) || hidesValue && name.elementsEqual("value".utf8) { hideWord() }
            default: pass()
            }
        }
    }

    private mutating func pass() {
        shown.append(bytes[index])
        index += 1
    }

    /// Passes `"name": ` and hides the value after it. Returns false if there is no such member here.
    private mutating func hideMember() -> Bool {
        let end = endOfString(from: index)
        guard end - index <= 100, end < bytes.count else { return false }
        let name = bytes[(index + 1)..<(end - 1)]
        guard !name.isEmpty, let colon = nextText(from: end), bytes[colon] == UInt8(ascii: ":"),
            Self.isSecret(name), let value = nextText(from: colon + 1)
        else { return false }
        shown += bytes[index..<value] + Array(Secrets.mark.utf8)
        index = endOfValue(from: value)
        return true
    }

    /// Returns the index of the next character that is not white space; `nil` at the end.
    private func nextText(from start: Int) -> Int? {
        bytes[start...].firstIndex { $0 > 0x20 }
    }

    /// Returns the index after the closing quote, or the end.
    private func endOfString(from start: Int) -> Int {
        var place = start + 1
        while place < bytes.count, bytes[place] != bytes[start] { place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1 }
        return min(place + 1, bytes.count)
    }

    /// Returns the index after a JSON value, nested values included.
    private func endOfValue(from start: Int) -> Int {
        var place = start
        var depth = 0
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "\""):
                place = endOfString(from: place)
                if depth == 0 { return place }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return place }
                depth -= 1
                if depth == 0 { return place + 1 }
            case UInt8(ascii: ","), 0...0x20: if depth == 0 { return place }
            default: break
            }
            place += 1
        }
        return bytes.count
    }

    /// Hides the value of a field or an attribute: a quoted text, or the text up to the next delimiter.
    private mutating func hideWord() {
        guard index < bytes.count else { return }
        shown += Secrets.mark.utf8
        if bytes[index] == UInt8(ascii: "\"") || bytes[index] == UInt8(ascii: "'") {
            index = endOfString(from: index)
        } else {
            index = bytes[index...].firstIndex { $0 <= 0x20 || Self.delimiters.contains($0) } ?? bytes.count
        }
    }

    private static let delimiters = Array("&;,<>\"'".utf8)

    private static func nameAtEnd(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isNameByte = { (byte: UInt8) in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
            default: false
            }
        }
        let start = bytes.lastIndex { !isNameByte($0) }.map { $0 + 1 } ?? bytes.startIndex
        return bytes[start...].suffix(80)
    }

    /// Returns whether a tag's name attribute is the name of a secret.
    private func namesSecret(_ tag: ArraySlice<UInt8>) -> Bool {
        guard let range = tag.firstRange(of: "name=".utf8) else { return false }
        let name = tag[range.upperBound...].drop { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
        return Self.isSecret(name.prefix { $0 > 0x20 && !Self.delimiters.contains($0) && $0 != UInt8(ascii: "/") })
    }

    private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
        let name = String(decoding: name, as: UTF8.self)
        return !name.isEmpty && (Secrets.hidesParameter(name) || FieldName(name).isSecret)
    }
}
