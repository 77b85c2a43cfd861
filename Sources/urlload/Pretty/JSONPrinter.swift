// SPDX-License-Identifier: Apache-2.0

// Formats JSON with line breaks and colours. Names, numbers and strings keep their spelling and order.

struct JSONPrinter {
    private var rest: ArraySlice<UInt8>
    private let pretty: Pretty
    private var text = ""
    private var depth = 0

    /// - Returns: `nil` if the bytes are not JSON (RFC 8259), or would become too large a text.
    static func make(_ bytes: [UInt8], _ pretty: Pretty) -> String? {
        var printer = JSONPrinter(rest: bytes[...], pretty: pretty)
        printer.skipBlanks()
        guard printer.value() else { return nil }
        printer.skipBlanks()
        guard printer.rest.isEmpty else { return nil }
        return printer.text + "\n"
    }

    private mutating func skipBlanks() {
        while let byte = rest.first, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { rest = rest.dropFirst() }
    }

    private mutating func value() -> Bool {
        switch rest.first {
        case UInt8(ascii: "{"): return list("}", hasNames: true)
        case UInt8(ascii: "["): return list("]", hasNames: false)
        case UInt8(ascii: "\""): return string(.string)
        case nil: return false
        default: return word()
        }
    }

    private mutating func list(_ end: Unicode.Scalar, hasNames: Bool) -> Bool {
        guard depth < 512, let open = rest.popFirst() else { return false }
        text.unicodeScalars.append(Unicode.Scalar(open))
        depth += 1
        skipBlanks()
        if rest.first == UInt8(ascii: end) {
            depth -= 1
            rest = rest.dropFirst()
            text.unicodeScalars.append(end)
            return true
        }
        while true {
            guard breakLine() else { return false }
            if hasNames {
                guard string(.name) else { return false }
                skipBlanks()
                guard rest.popFirst() == UInt8(ascii: ":") else { return false }
                text += pretty.isFormatted ? ": " : ":"
                skipBlanks()
            }
            guard value() else { return false }
            skipBlanks()
            let mark = rest.popFirst()
            if mark == UInt8(ascii: ",") {
                text += ","
                skipBlanks()
                continue
            }
            guard mark == UInt8(ascii: end) else { return false }
            depth -= 1
            guard breakLine() else { return false }
            text.unicodeScalars.append(end)
            return true
        }
    }

    private mutating func breakLine() -> Bool {
        guard pretty.isFormatted else { return true }
        text += "\n" + String(repeating: " ", count: 4 * depth)
        return text.utf8.count < Pretty.mostBytes
    }

    private mutating func string(_ paint: Paint) -> Bool {
        guard rest.first == UInt8(ascii: "\"") else { return false }
        var index = rest.startIndex + 1
        while index < rest.endIndex, rest[index] != UInt8(ascii: "\"") {
            guard rest[index] >= 0x20 else { return false }
            index += rest[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < rest.endIndex else { return false }
        append(rest[...index], paint)
        rest = rest[(index + 1)...]
        return true
    }

    /// Takes `true`, `false`, `null` or a number.
    private mutating func word() -> Bool {
        let word = rest.prefix { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || [0x2B, 0x2D, 0x2E, 0x45].contains(byte)
        }
        let written = String(decoding: word, as: UTF8.self)
        let isWord = ["true", "false", "null"].contains(written)
        guard isWord || Double(written) != nil, let first = written.first, isWord || first == "-" || first.isNumber
        else { return false }
        append(word, isWord ? .word : .number)
        rest = rest.dropFirst(word.count)
        return true
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>, _ paint: Paint) {
        let written = String(decoding: bytes, as: UTF8.self)
        text += pretty.hasColors ? paint.on(written) : written
    }
}
