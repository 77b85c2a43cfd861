// SPDX-License-Identifier: Apache-2.0

// The options that messages name. Messages are written with curl's names; each grammar has names of its own, and its
// letters mean other things.

extension Grammar {
    /// The command that lists the options of this grammar.
    var help: String {
        switch self {
        case .curl: "urlload --help all"
        case .wget: "urlload wget --help"
        case .httpie: "urlload http --help"
        }
    }

    private var table: OptionTable {
        switch self {
        case .curl: .curl
        case .wget: .wget
        case .httpie: .httpie
        }
    }

    /// The names of options that have another name than curl's.
    private var names: [String: String] {
        switch self {
        case .curl: [:]
        case .wget:
            [
                "-C": "-c", "-c": "--save-cookies", "-d": "--post-data", "-f": "--no-content-on-error",
                "-H": "--header", "-i": "--save-headers", "-I": "--spider", "-J": "--content-disposition", "-o": "-O",
                "-u": "--user", "--cacert": "--ca-certificate", "--cert": "--certificate",
                "--insecure": "--no-check-certificate", "--key": "--private-key", "--max-redirects": "--max-redirect",
            ]
        case .httpie:
            // `-d` saves no error page, as `-f` of curl; `--check-status` saves it.
            [
                "-C": "-c", "-c": "--session", "-d": "--raw", "-f": "-d", "-F": "-f", "-J": "-d", "-o": "-o",
                "-u": "-a", "-x": "--proxy", "--cacert": "--verify", "--insecure": "--verify no",
                "--key": "--cert-key", "--pass": "--cert-key-pass",
            ]
        }
    }

    /// Returns a sentence of this program with the names that options have in this grammar. An option that the grammar
    /// does not have keeps curl's name, and the sentence says so.
    /// - Parameter sentence: without parts that come from the user or a server, in which nothing may be replaced.
    func naming(_ sentence: String) -> String {
        guard self != .curl else { return sentence }
        var text = ""
        var rest = sentence[...]
        while let first = rest.first {
            let isAtStart = text.last.map { $0 == " " || $0 == "(" } ?? true
            guard first == "-", isAtStart else {
                text.append(first)
                rest = rest.dropFirst()
                continue
            }
            var word = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) }
            if word.last == "." { word = word.dropLast() }
            text += name(String(word))
            rest = rest.dropFirst(word.count)
        }
        return text
    }

    private func name(_ option: String) -> String {
        if let name = names[option] { return name }
        guard option.contains(where: { $0 != "-" }) else { return option }
        let long = option.hasPrefix("--") ? String(option.dropFirst(2)) : ""
        return table.rules.contains { $0.names.contains(long) } ? option : option + " of curl's grammar"
    }
}
