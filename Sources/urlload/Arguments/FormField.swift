// SPDX-License-Identifier: Apache-2.0

// The argument of `-F`, in curl's grammar: `name=text`, `name=@file` or `name=<file`, followed by `;type=` and
// `;filename=`.

import URLLoading

struct FormField: Sendable, Hashable {
    enum Content: Sendable, Hashable {
        case text(String)
        /// A file part. A path; `-` is standard input.
        case file(String)
        /// A text part with the bytes of this file.
        case textOf(String)
    }

    var name: String
    var content: Content
    /// The media type; `nil` for the default.
    var type: String?
    var fileName: String?
    /// The content of a pipe, which was read before the first load; see ``PipedData``.
    var bytes: [UInt8]?

    /// True if the field reads standard input.
    var readsStandardInput: Bool { content == .file("-") || content == .textOf("-") }
}

extension FormField {
    /// A field of `--form-string`: all that follows `=` is text, also a leading `@` or `<`.
    static func literal(_ text: String) throws(UsageError) -> FormField {
        let (name, value) = try parts(text, "--form-string")
        return FormField(name: name, content: .text(String(value)))
    }

    /// - Parameter option: the one whose value the text is, for the error.
    init(_ text: String, _ option: String = "-F") throws(UsageError) {
        let (name, value) = try Self.parts(text, option)
        self.init(name: name, content: .text(String(value)))
        switch value.first {
        case "@", "<":
            var rest = value.dropFirst()
            let path = Self.word(&rest)
            content = value.first == "@" ? .file(path) : .textOf(path)
            while rest.popFirst() == ";" { try takeParameter(&rest, option) }
        default:
            // A text may contain semicolons: only a valid `;type=` at its end is a parameter.
            guard let start = Self.lastType(in: value) else { return }
            content = .text(String(value[..<start]))
            type = String(value[start...].dropFirst(";type=".count))
        }
    }

    private static func parts(_ text: String, _ option: String) throws(UsageError) -> (String, Substring) {
        guard let equals = text.firstIndex(of: "=") else {
            throw UsageError("\(option) takes name=value, and there is no = in it")
        }
        return (String(text[..<equals]), text[text.index(after: equals)...])
    }

    /// Takes the next parameter: `type=text/plain;charset=utf-8` or `filename="a;b.txt"`. Blanks before the name are
    /// skipped.
    private mutating func takeParameter(_ rest: inout Substring, _ option: String) throws(UsageError) {
        rest = rest.drop { $0 == " " }
        let parameter = rest.prefix { $0 != "=" && $0 != ";" }
        rest = rest.dropFirst(parameter.count)
        guard rest.popFirst() == "=" else {
            throw UsageError("\(option): '\(parameter)' is neither type=… nor filename=…")
        }
        switch parameter {
        case "type":
            // The parameters of the media type also follow semicolons.
            var type = Self.word(&rest)
            while rest.first == ";", !rest.dropFirst().drop(while: { $0 == " " }).hasPrefix("filename=") {
                rest = rest.dropFirst()
                type += ";" + Self.word(&rest)
            }
            guard MediaType(strict: type) != nil else { throw UsageError("\(option): '\(type)' is no media type") }
            self.type = type
        case "filename": fileName = Self.word(&rest)
        default: throw UsageError("\(option): '\(parameter)' is neither type nor filename")
        }
    }

    /// Returns the text up to the next semicolon, or a quoted string, in which a backslash escapes the next character.
    private static func word(_ rest: inout Substring) -> String {
        guard rest.first == "\"" else {
            let word = rest.prefix { $0 != ";" }
            rest = rest.dropFirst(word.count)
            return String(word)
        }
        rest = rest.dropFirst()
        var word = ""
        while let character = rest.popFirst(), character != "\"" {
            guard character == "\\", let escaped = rest.popFirst() else {
                word.append(character)
                continue
            }
            word.append(escaped)
        }
        return word
    }

    private static func lastType(in text: Substring) -> Substring.Index? {
        let mark = ";type="
        var start = text.endIndex
        while start > text.startIndex {
            start = text.index(before: start)
            guard text[start...].hasPrefix(mark) else { continue }
            return MediaType(strict: String(text[start...].dropFirst(mark.count))) == nil ? nil : start
        }
        return nil
    }
}
