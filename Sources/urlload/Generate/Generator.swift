// SPDX-License-Identifier: Apache-2.0

// In this folder: completions, the man page and the guide's tables

// `--generate KIND`: texts that are generated from the option table.

enum Generator {
    static let kinds: [String: @Sendable () -> String] = [
        "bash": { Completions.bash }, "zsh": { Completions.zsh }, "fish": { Completions.fish },
        "man": { ManPage.text }, "guide": { OptionComparison.text },
    ]

    /// Prints the text of a kind.
    static func run(_ kind: String) -> ExitCode {
        guard let make = kinds[kind] else {
            return Console.usage("--generate takes \(kinds.keys.sorted().joined(separator: ", ")), not \(kind)")
        }
        return Console.print(make())
    }
}
