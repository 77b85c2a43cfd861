// What `-F` says, in curl's words: `name=text`, `name=@file`, `name=<file`, and behind them `;type=` and
// `;filename=`.

import URLLoading

struct FormField: Sendable, Hashable {
    enum Content: Sendable, Hashable {
        case text(String)
        /// Sent as a file. A path; `-` is standard input.
        case file(String)
        /// Its bytes, sent as a text.
        case textOf(String)
    }

    var name: String
    var content: Content
    /// A media type; `nil` for the usual one.
    var type: String?
    var fileName: String?

    /// Whether it takes standard input.
    var readsStandardInput: Bool { content == .file("-") || content == .textOf("-") }

    init(name: String, content: Content, type: String? = nil, fileName: String? = nil) {
        self.name = name
        self.content = content
        self.type = type
        self.fileName = fileName
    }

    /// Everything behind the `=` is text, whatever it begins with.
    static func literal(_ text: String) throws(UsageError) -> FormField {
        let (name, value) = try parts(text, "--form-string")
        return FormField(name: name, content: .text(String(value)))
    }

    init(_ text: String) throws(UsageError) {
        let (name, value) = try Self.parts(text, "-F")
        self.init(name: name, content: .text(String(value)))
        switch value.first {
        case "@", "<":
            var rest = value.dropFirst()
            let path = Self.word(&rest)
            content = value.first == "@" ? .file(path) : .textOf(path)
            while rest.popFirst() == ";" { try takeParameter(&rest) }
        default:
            // A text may have semicolons of its own: only what is a type at its end is none of it.
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

    /// `type=text/plain;charset=utf-8`, `filename="a;b.txt"`; blanks before the name do not count.
    private mutating func takeParameter(_ rest: inout Substring) throws(UsageError) {
        rest = rest.drop { $0 == " " }
        let parameter = rest.prefix { $0 != "=" && $0 != ";" }
        rest = rest.dropFirst(parameter.count)
        guard rest.popFirst() == "=" else { throw UsageError("-F: '\(parameter)' is neither type=… nor filename=…") }
        switch parameter {
        case "type":
            // Its own parameters have semicolons, too.
            var type = Self.word(&rest)
            while rest.first == ";", !rest.dropFirst().drop(while: { $0 == " " }).hasPrefix("filename=") {
                rest = rest.dropFirst()
                type += ";" + Self.word(&rest)
            }
            guard MediaType(strict: type) != nil else { throw UsageError("-F: '\(type)' is no media type") }
            self.type = type
        case "filename": fileName = Self.word(&rest)
        default: throw UsageError("-F: '\(parameter)' is neither type nor filename")
        }
    }

    /// Up to the next semicolon, or between quotes, where a backslash makes the next character one of its own.
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
