// One option: its names, what it takes, what it says about itself, what it does, and what it is called elsewhere.
// `OptionTable` lists them all; parser, help, completions, man page and the table of other tools' options are written
// from that list, so that they cannot differ.

struct OptionRule: Sendable {
    typealias Apply = @Sendable (inout Options, String) throws(UsageError) -> Void

    enum Group: String, Sendable, CaseIterable {
        case output = "Output"
        case request = "Request"
        case redirects = "Redirects"
        case way = "Connection and proxies"
        case login = "Authentication"
        case memory = "Cookies and HSTS"
        case security = "Security"
        case cache = "Cache"
        case limits = "Limits"
        case retries = "Retries"
        case watching = "Logging and tracing"
        case other = "Other"
    }

    /// Without the dash.
    let short: Character?
    /// Without the dashes.
    let long: String
    /// What the value is called in the help; `nil` for an option without one.
    let value: String?
    let group: Group
    let help: String
    let apply: Apply
    /// What `--no-NAME` does; `nil` if there is no such form.
    private(set) var undo: Apply?
    /// Further long names: those of other tools, and abbreviations.
    private(set) var aliases: [String] = []
    /// Tells whether the next word is the value of an option that may stand alone; `nil` if the option does not have
    /// that choice.
    private(set) var takesWord: (@Sendable (String) -> Bool)?
    /// The same in the other tools; `nil` if they have no such option.
    private(set) var wget: String?
    private(set) var httpie: String?
    /// Whether completions offer files.
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

    /// An option that takes no value.
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

    /// An option that is on or off: `--NAME`, `--no-NAME`.
    init(
        _ group: Group, _ short: Character?, switch long: String, _ help: String,
        _ path: any WritableKeyPath<Options, Bool> & Sendable
    ) {
        self.init(group, short, flag: long, help) { $0[keyPath: path] = true }
        undo = { (options, _) throws(UsageError) in options[keyPath: path] = false }
    }

    /// An option of other tools that asks for what happens anyway.
    init(_ group: Group, _ short: Character?, granted long: String, _ help: String) {
        self.init(group, short, flag: long, help) { _ in }
        undo = { (_, _) throws(UsageError) in }
    }

    /// The same option under further long names.
    func also(_ names: String...) -> Self {
        var rule = self
        rule.aliases += names
        return rule
    }

    /// What the option is called in wget and httpie.
    func like(wget: String? = nil, httpie: String? = nil) -> Self {
        var rule = self
        (rule.wget, rule.httpie) = (wget, httpie)
        return rule
    }

    /// The option may stand alone: the next word is its value only if `takesWord` says so.
    func optional(_ takesWord: @escaping @Sendable (String) -> Bool) -> Self {
        var rule = self
        rule.takesWord = takesWord
        return rule
    }

    /// Gives the option a `--no-NAME` form.
    func undone(_ undo: @escaping @Sendable (inout Options) -> Void) -> Self {
        var rule = self
        rule.undo = { (options, _) throws(UsageError) in undo(&options) }
        return rule
    }

    var names: [String] { [long] + aliases }

    /// `-o, --output FILE`.
    var signature: String {
        let names = short.map { "-\($0), --\(long)" } ?? "    --\(long)"
        guard let value else { return names }
        return takesWord == nil ? "\(names) \(value)" : "\(names) [\(value)]"
    }
}
