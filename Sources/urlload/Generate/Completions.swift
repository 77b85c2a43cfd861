// SPDX-License-Identifier: Apache-2.0

// Completions for bash, zsh and fish: options with descriptions, files after options that take one, commands.

enum Completions {
    private static var rules: [OptionRule] { OptionTable.curl.rules }

    private static func words(_ rule: OptionRule) -> [String] {
        (rule.short.map { ["-\($0)"] } ?? []) + rule.names.map { "--\($0)" }
    }

    /// True if the argument after the option is always its value.
    private static func takesNextWord(_ rule: OptionRule) -> Bool { rule.value != nil && rule.takesWord == nil }

    /// The possible values of an option; empty if it takes any.
    private static func choices(_ rule: OptionRule) -> [String] {
        switch rule.long {
        case "help": Help.categories + ["all"]
        case "generate": Generator.kinds.keys.sorted()
        case "pretty": ["all", "colors", "format", "none"]
        case "summary": ["json"]
        case "tls-min", "tls-max": ["1.0", "1.1", "1.2", "1.3"]
        case "request": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        case "policy": ["protocol", "reload", "reload-all", "revalidate", "stored", "stored-only"]
        default: []
        }
    }

    // MARK: bash

    static var bash: String {
        let files = rules.filter { $0.takesFile && takesNextWord($0) }.flatMap(words)
        let others = rules.filter { !$0.takesFile && takesNextWord($0) && choices($0).isEmpty }.flatMap(words)
        let chosen = rules.filter { !choices($0).isEmpty }.map { rule in
            "        \(words(rule).joined(separator: "|"))) "
                + "COMPREPLY=($(compgen -W '\(choices(rule).joined(separator: " "))' -- \"$word\")); return ;;\n"
        }
        return """
            # Completions of urlload for bash, made by urlload --generate bash.
            _urlload() {
                local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
                COMPREPLY=()
                case $before in
                    \(files.joined(separator: "|"))) COMPREPLY=($(compgen -f -- "$word")); return ;;
                    \(others.joined(separator: "|"))) return ;;
            \(chosen.joined())    esac
                if [[ $word == -* ]]; then
                    COMPREPLY=($(compgen -W '\(rules.flatMap(words).joined(separator: " "))' -- "$word"))
                elif (( COMP_CWORD == 1 )); then
                    COMPREPLY=($(compgen -W '\(Help.commands.map(\.0).joined(separator: " "))' -- "$word"))
                fi
            }
            complete -o default -F _urlload urlload

            """
    }

    // MARK: zsh

    static var zsh: String {
        let options = rules.map { rule in
            let value = rule.value.map { value -> String in
                let action =
                    choices(rule).isEmpty
                    ? rule.takesFile ? "_files" : " " : "(\(choices(rule).joined(separator: " ")))"
                return "\(rule.takesWord == nil ? ":" : "::")\(zshText(value)):\(action)"
            }
            let all = words(rule)
            let names = all.count == 1 ? "'\(all[0])" : "{\(all.joined(separator: ","))}'"
            return "        '*'\(names)[\(zshText(rule.help))]\(value ?? "")' \\\n"
        }
        let commands = Help.commands.map { "'\($0.0):\(zshText($0.1))'" }.joined(separator: " ")
        return """
            #compdef urlload
            # Completions of urlload for zsh, made by urlload --generate zsh.
            _urlload_first() {
                local -a commands=(\(commands))
                _describe command commands
                _urls
            }
            _urlload() {
                _arguments -s \\
            \(options.joined())        '1: :_urlload_first' '*: :_urls'
            }
            if [[ $funcstack[1] == _urlload ]]; then _urlload "$@"; else compdef _urlload urlload; fi

            """
    }

    private static func zshText(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("'", with: "'\\''").replacing("[", with: "\\[").replacing(
            "]", with: "\\]"
        ).replacing(":", with: "\\:")
    }

    // MARK: fish

    static var fish: String {
        var text = "# Completions of urlload for fish, made by urlload --generate fish.\n"
        for (name, help) in Help.commands {
            text += "complete -c urlload -n __fish_use_subcommand -a \(name) -d '\(fishText(help))'\n"
        }
        for rule in rules {
            let short = rule.short.map { " -s '\($0)'" } ?? ""
            let long = rule.names.map { " -l \($0)" }.joined()
            var line = "complete -c urlload\(short)\(long)"
            if takesNextWord(rule) { line += rule.takesFile ? " -r -F" : " -x" }
            if !choices(rule).isEmpty { line += " -a '\(choices(rule).joined(separator: " "))'" }
            text += line + " -d '\(fishText(rule.help))'\n"
        }
        return text
    }

    private static func fishText(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
    }
}
