// Where a program keeps what it may lose, and what it should not (XDG Base Directory Specification 0.8).

package enum StorageFolders {
    /// What can be had again: `$XDG_CACHE_HOME/<program>`, or `~/.cache/<program>`.
    package static var cache: String { folder("XDG_CACHE_HOME", "/.cache") + "/" + program }
    /// What should stay: `$XDG_STATE_HOME/<program>`, or `~/.local/state/<program>`.
    package static var state: String { folder("XDG_STATE_HOME", "/.local/state") + "/" + program }

    /// The same for all programs that know the name.
    package static func state(sharedAs name: String) -> String {
        folder("XDG_STATE_HOME", "/.local/state") + "/" + name
    }

    private static func folder(_ variable: String, _ standard: String) -> String {
        // A path that is not absolute is to be ignored.
        if let path = Environment.value(variable), path.hasPrefix("/") { return path }
        return (Environment.value("HOME") ?? "/") + standard
    }

    /// The name of the executable: programs share nothing unless they say so.
    package static let program: String = {
        let name = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? ""
        return name.isEmpty || name == "." || name == ".." ? "url-loading" : name
    }()
}
