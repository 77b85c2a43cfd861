// SPDX-License-Identifier: Apache-2.0

// Room: completions, the man page and the guide's tables

// `--generate KIND`: texts that are generated from the option table.

enum Generator {
    static let kinds: [String: @Sendable () -> String] = [
        "bash": { Completions.bash }, "zsh": { Completions.zsh }, "fish": { Completions.fish },
        "man": { ManPage.text }, "guide": { OptionComparison.text },
    ]

    /// The commands, which the first argument may name, with a description.
    static let commands = [
        ("http", "build a request as httpie does"), ("wget", "load files as wget does"),
        ("ws", "talk through a WebSocket"), ("tls", "show a server's certificates"), ("cache", "look into a cache"),
        ("bg", "load in the background, also after the end of this command"), ("har", "draw an HTTP Archive"),
        ("top", "watch the session of a running program"),
        ("tour", "see what the library can do"),
    ]

    /// Prints the text of a kind.
    static func run(_ kind: String) -> ExitCode {
        guard let make = kinds[kind] else {
            return Console.usage("--generate takes \(kinds.keys.sorted().joined(separator: ", ")), not \(kind)")
        }
        return Console.print(make())
    }
}
