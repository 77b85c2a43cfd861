// From words to `Options`: `-s`, `-sf`, `-oFILE`, `-o FILE`, `--output FILE`, `--output=FILE`; after
// `--` everything is a URL. Knows no option by name.

struct ArgumentParser {
    private var words: ArraySlice<String>
    private var options = Options()

    /// - Parameter arguments: without the name of the program.
    static func parse(_ arguments: [String]) throws(UsageError) -> Options {
        var parser = ArgumentParser(words: arguments[...])
        while let word = parser.words.popFirst() { try parser.take(word) }
        try OptionCheck.check(parser.options)
        return parser.options
    }

    private init(words: ArraySlice<String>) { self.words = words }

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
        guard let rule = OptionTable.rules.first(where: { $0.long == name }) else {
            throw UsageError("there is no option --\(name)" + Self.suggestion(name))
        }
        if rule.value == nil, parts.count > 1 { throw UsageError("--\(name) takes no value") }
        try apply(rule, parts.count > 1 ? String(parts[1]) : nil, "--\(name)")
    }

    private mutating func takeShort(_ word: Substring) throws(UsageError) {
        var rest = word
        while let letter = rest.popFirst() {
            guard let rule = OptionTable.rules.first(where: { $0.short == letter }) else {
                throw UsageError("there is no option -\(letter)")
            }
            guard rule.value != nil else {
                try apply(rule, nil, "-\(letter)")
                continue
            }
            return try apply(rule, rest.isEmpty ? nil : String(rest), "-\(letter)")
        }
    }

    private mutating func apply(_ rule: OptionRule, _ given: String?, _ name: String) throws(UsageError) {
        guard let metavariable = rule.value else { return try rule.apply(&options, "") }
        guard let value = given ?? words.popFirst() else {
            throw UsageError("\(name) needs a value: \(metavariable)")
        }
        try rule.apply(&options, value)
    }

    private static func suggestion(_ name: String) -> String {
        let near = OptionTable.rules.map { ($0.long, distance($0.long, name)) }.min { $0.1 < $1.1 }
        guard let near, near.1 <= 2 else { return "" }
        return "; did you mean --\(near.0)?"
    }

    /// How many letters must be added, removed or changed to make one of the other.
    static func distance(_ a: String, _ b: String) -> Int {
        let b = Array(b)
        var row = Array(0...b.count)
        for (i, letter) in a.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for j in b.indices {
                let above = row[j + 1]
                row[j + 1] = min(above + 1, row[j] + 1, diagonal + (letter == b[j] ? 0 : 1))
                diagonal = above
            }
        }
        return row[b.count]
    }
}

/// What no option can see alone.
enum OptionCheck {
    static func check(_ options: Options) throws(UsageError) {
        guard !options.wantsHelp, !options.wantsVersion else { return }
        if case .file = options.destination, options.urls.count > 1 {
            throw UsageError("-o takes one URL; use -O for \(options.urls.count)")
        }
        let readers =
            options.payloads.count(where: { $0 == .file("-") }) + options.formFields.count(where: \.readsStandardInput)
            + (options.upload == "-" ? 1 : 0)
        if readers > 1 || readers > 0 && options.urls.count > 1 { throw UsageError("standard input can be sent once") }
        let continuesUpload = options.upload != nil && options.urls.allSatisfy { $0.lowercased().hasPrefix("ftp") }
        if options.continues, !continuesUpload,
            options.destination == .standardOutput || options.asksForHead || options.includesHead || options.sendsBody
        {
            throw UsageError("-C goes on with a file (-o, -O) loaded by GET, without -i; or with -T to ftp")
        }
        if options.continues, options.destination == .namedAfterURL {
            let names = options.urls.compactMap { AddressText.url($0) }.map(FileName.make)
            if Set(names).count < names.count { throw UsageError("-C takes one URL for each file name") }
        }
        if options.upload != nil, !options.formFields.isEmpty {
            throw UsageError("-F sends a form and -T sends a file: not both")
        }
        if !options.formFields.isEmpty, !options.payloads.isEmpty {
            throw UsageError("-F sends a form and -d sends data: not both")
        }
        if options.asksForHead, !options.formFields.isEmpty {
            throw UsageError("-I asks for a head and -F sends a form: not both")
        }
        try checkEvents(options)
        if options.asksForHead, !options.payloads.isEmpty {
            throw UsageError("-I asks for a head and -d sends a body: not both")
        }
        if options.upload != nil, options.asksForHead || !options.payloads.isEmpty {
            throw UsageError("-T sends a file: not together with -d or -I")
        }
        if options.uploadState != nil {
            guard let upload = options.upload, upload != "-" else {
                throw UsageError("--resumable needs -T with a file")
            }
            if options.urls.count > 1 { throw UsageError("--resumable takes one URL: STATEFILE remembers one upload") }
        }
        if options.trust.keyFile != nil, options.trust.certificateFile == nil { throw UsageError("--key needs --cert") }
        _ = try options.way.policy()
        if let least = options.minimumTLS, let most = options.maximumTLS, least > most {
            throw UsageError("--tls-min is above --tls-max")
        }
    }

    private static func checkEvents(_ options: Options) throws(UsageError) {
        guard options.printsEvents else { return }
        if options.urls.count > 1 { throw UsageError("--sse takes one URL: events do not end") }
        if options.destination != .standardOutput || options.includesHead || options.asksForHead {
            throw UsageError("--sse writes events to standard output: not with -o, -O, -i or -I")
        }
    }
}
