// `--generate KIND`: what others read of the option table, so that none of it is written twice.

enum Generator {
    static let kinds: [String: @Sendable () -> String] = [
        "bash": { Completions.bash }, "zsh": { Completions.zsh }, "fish": { Completions.fish },
        "man": { ManPage.text }, "guide": { HabitTable.text },
    ]

    /// The commands that the first word may name, with what they do.
    static let commands = [
        ("http", "build a request as httpie does"), ("wget", "load files as wget does"),
        ("ws", "talk through a WebSocket"), ("tls", "show a server's certificates"), ("cache", "look into a cache"),
        ("har", "draw an HTTP Archive"), ("top", "watch the session of a running program"),
        ("tour", "see what the library can do"),
    ]

    static func run(_ kind: String) -> ExitCode {
        guard let make = kinds[kind] else {
            return Console.usage("--generate takes \(kinds.keys.sorted().joined(separator: ", ")), not \(kind)")
        }
        return Console.print(make())
    }
}
