// SPDX-License-Identifier: Apache-2.0

// The folders for a program's caches and state (XDG Base Directory Specification 0.8).

package enum StorageFolders {
    /// For data that can be fetched again: `$XDG_CACHE_HOME/<program>`, or `~/.cache/<program>`.
    package static var cache: String { folder("XDG_CACHE_HOME", "/.cache") + "/" + program }
    /// For data that should persist: `$XDG_STATE_HOME/<program>`, or `~/.local/state/<program>`.
    package static var state: String { folder("XDG_STATE_HOME", "/.local/state") + "/" + program }

    /// Returns a state folder shared by all programs that use the same name.
    package static func state(sharedAs name: String) -> String {
        folder("XDG_STATE_HOME", "/.local/state") + "/" + name
    }

    private static func folder(_ variable: String, _ standard: String) -> String {
        // The specification requires relative paths to be ignored.
        if let path = Environment.value(variable), path.hasPrefix("/") { return path }
        return (Environment.value("HOME") ?? "/") + standard
    }

    /// The name of the executable; programs share nothing unless they opt in.
    package static let program: String = {
        let name = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? ""
        return name.isEmpty || name == "." || name == ".." ? "url-loading" : name
    }()
}
