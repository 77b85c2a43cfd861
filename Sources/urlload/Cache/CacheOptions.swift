// SPDX-License-Identifier: Apache-2.0

/// The parsed arguments of `urlload cache`.
struct CacheOptions: Sendable {
    enum Verb: String, Sendable {
        case list = "ls"
        case show, why
        case remove = "rm"
        /// For tests; not in the help.
        case exercise
    }
    /// `nil` to print the usage.
    private(set) var verb: Verb?
    private(set) var directory = ""
    private(set) var urls: [String] = []
    private(set) var printsJSON = false
    private(set) var showsSecrets = false
    private(set) var removesAll = false
    /// In seconds.
    private(set) var olderThan: Double?
    private(set) var count = 0

    init(_ arguments: [String]) throws(UsageError) {
        var words = arguments[...]
        if words.isEmpty || words.contains("--help") || words.contains("-h") { return }
        let word = words.removeFirst()
        guard let verb = Verb(rawValue: word) else {
            throw UsageError("there is no cache \(word): ls, show, why or rm")
        }
        self.verb = verb
        while let word = words.popFirst() { try take(word, &words) }
        guard !directory.isEmpty else { throw UsageError("cache \(verb.rawValue) needs --cache DIR") }
        try check(verb)
    }

    private mutating func take(_ word: String, _ words: inout ArraySlice<String>) throws(UsageError) {
        switch word {
        case "--cache": directory = try Self.value(word, &words)
        case "--json": printsJSON = true
        case "--show-secrets": showsSecrets = true
        case "--all": removesAll = true
        case "--older":
            guard let seconds = Double(try Self.value(word, &words)), seconds >= 0 else {
                throw UsageError("--older takes seconds")
            }
            olderThan = seconds
        case "--count": count = Int(try Self.value(word, &words)) ?? 0
        case _ where word.hasPrefix("--cache="): directory = String(word.dropFirst(8))
        case _ where word.hasPrefix("-"): throw UsageError("cache has no option \(word)")
        default: urls.append(word)
        }
    }

    private static func value(_ name: String, _ words: inout ArraySlice<String>) throws(UsageError) -> String {
        guard let value = words.popFirst() else { throw UsageError("\(name) needs a value") }
        return value
    }

    private func check(_ verb: Verb) throws(UsageError) {
        if verb == .show || verb == .why, urls.isEmpty { throw UsageError("cache \(verb.rawValue) takes URLs") }
        guard verb == .remove else { return }
        let count = (removesAll ? 1 : 0) + (olderThan != nil ? 1 : 0) + (urls.isEmpty ? 0 : 1)
        guard count == 1 else { throw UsageError("cache rm takes one of --all, --older and URLs") }
    }

    func wants(_ url: String) -> Bool {
        urls.isEmpty
            || urls.contains { $0.hasSuffix("*") ? url.hasPrefix($0.dropLast()) : url == $0 || url == $0 + "/" }
    }
}
