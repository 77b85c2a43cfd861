// SPDX-License-Identifier: Apache-2.0

// Files of options (`-K FILE`, `~/.config/urlload/config`) in curl's format: one option a line, with or without its
// dashes; then its value after a blank, `=` or `:`, in quotes if it contains blanks; `#` begins a comment.

import Glibc

enum ConfigFile {
    struct Line: Sendable, Hashable {
        /// The name as written in the file: `-o`, `--output` or `output`.
        var name: String
        var value: String?
        var number: Int
    }

    /// The path of the file that every run reads, unless its first option is `-q`; `nil` without a home folder.
    static var standard: String? { folder.map { $0 + "/config" } }

    /// The folder of urlload's configuration; `nil` without a home folder.
    static var folder: String? {
        if let folder = variable("XDG_CONFIG_HOME") { return folder + "/urlload" }
        return variable("HOME").map { $0 + "/.config/urlload" }
    }

    private static func variable(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }), text.hasPrefix("/") else { return nil }
        return text
    }

    /// Returns the text of a file; `-` is standard input.
    /// - Returns: `nil` if the file does not exist and `mustExist` is false.
    static func text(_ path: String, mustExist: Bool) throws(UsageError) -> String? {
        if !mustExist, access(path, F_OK) != 0 { return nil }
        do throws(OutputError) { return String(decoding: try InputFile.all(path), as: UTF8.self) } catch {
            throw UsageError("-K: \(error.words)")
        }
    }

    static func lines(_ text: String, _ path: String) throws(UsageError) -> [Line] {
        var lines: [Line] = []
        for (index, raw) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = raw.drop { $0 == " " || $0 == "\t" }
            guard let first = line.first, first != "#" else { continue }
            let name = line.prefix { !" \t=:".contains($0) }
            var rest = line.dropFirst(name.count).drop { $0 == " " || $0 == "\t" }
            if rest.first == "=" || rest.first == ":" { rest = rest.dropFirst() }
            rest = rest.drop { $0 == " " || $0 == "\t" }
            lines.append(Line(name: String(name), value: value(rest), number: index + 1))
        }
        return lines
    }

    /// Returns the value, or `nil` if it is empty. Between quotes `\"`, `\\`, `\t`, `
    /// `, `\r` and `\v` are escapes, as in curl.
    private static func value(_ text: Substring) -> String? {
        guard text.first == "\"" else {
            let word = text.prefix { $0 != " " && $0 != "\t" }
            return word.isEmpty ? nil : String(word)
        }
        var value = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst(), character != "\"" {
            guard character == "\\", let escaped = rest.popFirst() else {
                value.append(character)
                continue
            }
            let known: [Character: Character] = ["t": "\t", "n": "\n", "r": "\r", "v": "\u{0B}"]
            value.append(known[escaped] ?? escaped)
        }
        return value
    }
}
