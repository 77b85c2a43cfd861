// SPDX-License-Identifier: Apache-2.0

// In this folder: the command line's subcommands

// The first argument selects a command. If it names none, all arguments are options and URLs to load.
enum Command {
    /// - Returns: the number to exit with.
    static func run(_ arguments: [String]) async -> Int32 {
        let rest = Array(arguments.dropFirst())
        switch arguments.first {
        case "wget"?: return await WgetCommand.run(rest)
        case let scheme? where scheme == "http" || scheme == "https":
            return await HTTPieCommand.run(rest, scheme: scheme)
        default: return await command(arguments).rawValue
        }
    }

    private static func command(_ arguments: [String]) async -> ExitCode {
        guard let first = arguments.first else { return await Demonstration.run() }
        let rest = Array(arguments.dropFirst())
        switch first {
        case "tour": return await Tour.run(rest)
        case "ws": return await WebSocketCommand.run(rest)
        case "tls": return await TLSCommand.run(rest)
        case "har": return HARCommand.run(rest)
        case "top": return await TopCommand.run(rest)
        case "cache": return CacheCommand.run(rest)
        case "bg": return await BackgroundCommand.run(rest)
        default: break
        }
        do throws(UsageError) {
            return await LoadCommand.run(try ArgumentParser.parseAll(arguments, config: ConfigFile.standard)).code
        } catch {
            return Console.usage(error.words)
        }
    }
}
