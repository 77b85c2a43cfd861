// One option: its names, what it takes, what it says about itself and what it does. `OptionTable`
// lists them all; parser and help are both written from that list, so that they cannot differ.

struct OptionRule: Sendable {
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
    let apply: @Sendable (inout Options, String) throws(UsageError) -> Void

    init(
        _ group: Group, _ short: Character?, _ long: String, _ value: String, _ help: String,
        _ apply: @escaping @Sendable (inout Options, String) throws(UsageError) -> Void
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
        _ apply: @escaping @Sendable (inout Options) -> Void
    ) {
        self.short = short
        self.long = long
        value = nil
        self.group = group
        self.help = help
        self.apply = { (options, _) throws(UsageError) in apply(&options) }
    }

    /// `-o, --output FILE`.
    var signature: String {
        let names = short.map { "-\($0), --\(long)" } ?? "    --\(long)"
        return value.map { "\(names) \($0)" } ?? names
    }
}
