// SPDX-License-Identifier: Apache-2.0

// In this folder: options as a table, parsed into a value (34 files: the table in parts)

// Parses arguments into `Options`: `-s`, `-sf`, `-oFILE`, `-o FILE`, `--output FILE`, `--output=FILE`, `--no-fail`,
// unambiguous prefixes of long names; after `--` every argument is a URL. The options themselves are in `OptionTable`.

struct ArgumentParser {
    private let table: OptionTable
    private var words: ArraySlice<String> = []
    private var options = Options()
    /// The groups of options before the last `--next`.
    private var finished: [Options] = []
    private var configDepth = 0

    /// Returns the options of the first group (`--next` begins another).
    /// - Parameter arguments: without the name of the program.
    static func parse(_ arguments: [String], table: OptionTable = .curl) throws(UsageError) -> Options {
        try parseAll(arguments, table: table)[0]
    }

    /// Returns the options of every group (at least one).
    /// - Parameters:
    ///   - arguments: without the name of the program.
    ///   - table: the supported options.
    ///   - config: a file of options that is read first, if it exists.
    static func parseAll(
        _ arguments: [String], table: OptionTable = .curl, config: String? = nil
    ) throws(UsageError) -> [Options] {
        var parser = ArgumentParser(table: table)
        // As in curl, `-q` counts only as the first argument.
        let ignoresConfig = arguments.first == "--disable" || arguments.first.map { $0.hasPrefix("-q") } ?? false
        if let config, !ignoresConfig { try parser.read(config: config, mustExist: false) }
        try parser.take(arguments[...])
        try parser.finish()
        for index in parser.finished.indices { parser.finished[index].shared = parser.options.shared }
        for options in parser.finished { try OptionCheck.check(options) }
        return parser.finished
    }

    private init(table: OptionTable) {
        self.table = table
        options.shared.grammar = table.grammar
    }

    /// Ends a group of options.
    private mutating func finish() throws(UsageError) {
        options.startsNext = false
        try table.conclude(&options)
        finished.append(options)
        let shared = options.shared
        options = Options()
        options.shared = shared
    }

    private mutating func take(_ arguments: ArraySlice<String>) throws(UsageError) {
        words = arguments
        while let word = words.popFirst() { try take(word) }
    }

    private mutating func take(_ word: String) throws(UsageError) {
        if word == "--" {
            options.urls += words
            words = []
        } else if word.hasPrefix("--") {
            try takeLong(word.dropFirst(2))
        } else if word.hasPrefix("-"), word != "-" {
            try takeShort(word.dropFirst())
        } else {
            options.urls.append(word)
        }
    }

    private mutating func takeLong(_ word: Substring) throws(UsageError) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        let value = parts.count > 1 ? String(parts[1]) : nil
        guard let rule = try table.rule(long: name) else {
            if name.hasPrefix("no-"), let rule = try table.rule(long: String(name.dropFirst(3))), let undo = rule.undo {
                if value != nil { throw UsageError("--\(name) takes no value") }
                options.given.removeAll { $0 == rule.long }
                return try undo(&options, "")
            }
            throw UsageError(table.unknown("--\(name)"))
        }
        if rule.value == nil, value != nil { throw UsageError("--\(name) takes no value") }
        try apply(rule, value, "--\(name)")
    }

    private mutating func takeShort(_ word: Substring) throws(UsageError) {
        var rest = word
        while let letter = rest.popFirst() {
            guard let rule = table.rules.first(where: { $0.short == letter }) else {
                throw UsageError(table.unknown("-\(letter)"))
            }
            let joined = rule.takesWord.map { $0(String(rest)) } ?? true
            guard rule.value != nil, joined || rest.isEmpty else {
                try apply(rule, nil, "-\(letter)", standsAlone: true)
                continue
            }
            return try apply(rule, rest.isEmpty ? nil : String(rest), "-\(letter)")
        }
    }

    private mutating func apply(
        _ rule: OptionRule, _ given: String?, _ name: String, standsAlone: Bool = false
    ) throws(UsageError) {
        guard let metavariable = rule.value else { return try perform(rule, "") }
        if let value = given { return try perform(rule, value) }
        if let takesWord = rule.takesWord {
            guard !standsAlone, let next = words.first, takesWord(next) else { return try perform(rule, "") }
        }
        guard let value = words.popFirst() else { throw UsageError("\(name) needs a value: \(metavariable)") }
        try perform(rule, value)
    }

    private mutating func perform(_ rule: OptionRule, _ value: String) throws(UsageError) {
        try rule.apply(&options, value)
        if !options.startsNext {
            options.given.append(rule.long)
        } else if !options.urls.isEmpty || !options.saving.inputLists.isEmpty {
            // As in curl, a group without a URL is not ended.
            try finish()
        }
        options.startsNext = false
        if let path = options.configFile {
            options.configFile = nil
            try read(config: path, mustExist: true)
        }
    }

    private mutating func read(config path: String, mustExist: Bool) throws(UsageError) {
        guard let text = try ConfigFile.text(path, mustExist: mustExist) else { return }
        guard configDepth < 8 else { throw UsageError("\(path): more than 8 config files include one another with -K") }
        configDepth += 1
        defer { configDepth -= 1 }
        let rest = words
        for line in try ConfigFile.lines(text, path) {
            words = []
            do throws(UsageError) { try take(line) } catch {
                throw UsageError("\(path), line \(line.number): \(error.words)")
            }
        }
        words = rest
    }

    private mutating func take(_ line: ConfigFile.Line) throws(UsageError) {
        let isShort = line.name.count == 2 && line.name.first == "-"
        let name = String(line.name.drop { $0 == "-" })
        guard let rule = isShort ? table.rules.first(where: { $0.short == name.first }) : try table.rule(long: name)
        else {
            guard name.hasPrefix("no-"), line.value == nil else { throw UsageError(table.unknown("--\(name)")) }
            return try takeLong(name[...])
        }
        if rule.value == nil, let value = line.value { throw UsageError("\(name) takes no value, not \(value)") }
        if rule.value != nil, rule.takesWord == nil, line.value == nil {
            throw UsageError("\(name) needs a value: \(rule.value ?? "")")
        }
        try perform(rule, line.value ?? "")
    }
}
