// SPDX-License-Identifier: Apache-2.0

// One option: its names, value, help text and effect, and its names in other tools. `OptionTable` lists all options;
// the parser, the help, completions, the man page and the table of other tools' options are made from that list.

struct OptionRule: Sendable {
    typealias Apply = @Sendable (inout Options, String) throws(UsageError) -> Void

    enum Group: String, Sendable, CaseIterable {
        case output = "Output"
        case request = "Request"
        case redirects = "Redirects"
        case connection = "Connection and proxies"
        case login = "Authentication"
        case memory = "Cookies and HSTS"
        case security = "Security"
        case cache = "Cache"
        case limits = "Limits"
        case retries = "Retries"
        case logging = "Logging and tracing"
        case other = "Other"

        /// The word by which `--help` finds the group.
        var category: String {
            switch self {
            case .connection: "connection"
            case .memory: "cookies"
            case .logging: "tracing"
            default: rawValue.lowercased()
            }
        }

        /// Further words for the group: curl's names of categories, and parts of the heading.
        var keywords: [String] {
            switch self {
            case .output: ["file", "download"]
            case .request: ["http", "post", "upload", "form"]
            case .redirects: ["redirect"]
            case .connection: ["proxy", "proxies", "dns", "socks"]
            case .login: ["auth", "login", "password"]
            case .memory: ["cookie", "hsts"]
            case .security: ["tls", "ssl", "certificates"]
            case .cache: ["caching"]
            case .limits: ["limit", "time", "timeout", "speed"]
            case .retries: ["retry"]
            case .logging: ["trace", "verbose", "logging", "har"]
            case .other: ["misc", "curl", "config"]
            }
        }
    }

    /// The letter, without the dash.
    let short: Character?
    /// The long name, without the dashes.
    let long: String
    /// The placeholder of the value in the help; `nil` for an option without a value.
    let value: String?
    let group: Group
    let help: String
    let apply: Apply
    /// The effect of `--no-NAME`; `nil` without that form.
    private(set) var undo: Apply?
    /// Further long names: abbreviations and those of other tools.
    private(set) var aliases: [String] = []
    /// For an option whose value is optional: returns true if the next argument is the value. `nil` for all other
    /// options.
    private(set) var takesWord: (@Sendable (String) -> Bool)?
    /// The name of the same option in wget and httpie; `nil` if they have none.
    private(set) var wget: String?
    private(set) var httpie: String?
    /// True if completions offer files for the value.
    var takesFile: Bool {
        value.map { $0.contains("FILE") || $0 == "LIST" || $0.contains("PATH") || $0.contains("DIR") } ?? false
    }

    init(
        _ group: Group, _ short: Character?, _ long: String, _ value: String, _ help: String, _ apply: @escaping Apply
    ) {
        self.short = short
        self.long = long
        self.value = value
        self.group = group
        self.help = help
        self.apply = apply
    }

    /// An option without a value.
    init(
        _ group: Group, _ short: Character?, flag long: String, _ help: String,
        _ apply: @escaping @Sendable (inout Options) throws(UsageError) -> Void
    ) {
        self.short = short
        self.long = long
        value = nil
        self.group = group
        self.help = help
        self.apply = { (options, _) throws(UsageError) in try apply(&options) }
    }

    /// An option with two forms: `--NAME` and `--no-NAME`.
    init(
        _ group: Group, _ short: Character?, switch long: String, _ help: String,
        _ path: any WritableKeyPath<Options, Bool> & Sendable
    ) {
        self.init(group, short, flag: long, help) { $0[keyPath: path] = true }
        undo = { (options, _) throws(UsageError) in options[keyPath: path] = false }
    }

    /// An option of other tools that has no effect, because its behaviour is the default here.
    init(_ group: Group, _ short: Character?, granted long: String, _ help: String) {
        self.init(group, short, flag: long, help) { _ in }
        undo = { (_, _) throws(UsageError) in }
    }

    /// Returns the option with further long names.
    func also(_ names: String...) -> Self {
        var rule = self
        rule.aliases += names
        return rule
    }

    /// Returns the option with its names in wget and httpie.
    func like(wget: String? = nil, httpie: String? = nil) -> Self {
        var rule = self
        (rule.wget, rule.httpie) = (wget, httpie)
        return rule
    }

    /// Returns the option with an optional value: the next argument is its value only if `takesWord` returns true.
    func optional(_ takesWord: @escaping @Sendable (String) -> Bool) -> Self {
        var rule = self
        rule.takesWord = takesWord
        return rule
    }

    /// Returns the option with a `--no-NAME` form.
    func undone(_ undo: @escaping @Sendable (inout Options) -> Void) -> Self {
        var rule = self
        rule.undo = { (options, _) throws(UsageError) in undo(&options) }
        return rule
    }

    /// The long names. wget's `-nc`, `-nd` and the like have none.
    var names: [String] { (long.count == 1 ? [] : [long]) + aliases }

    /// The option as shown in the help: `-o, --output FILE`.
    var signature: String {
        let names = long.count == 1 ? "-\(long)" : short.map { "-\($0), --\(long)" } ?? "    --\(long)"
        guard let value else { return names }
        return takesWord == nil ? "\(names) \(value)" : "\(names) [\(value)]"
    }
}
