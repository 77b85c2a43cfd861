// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The background agent as a program: `url-loading-agent`, or a program that serves as its own agent.
///
/// ```swift
/// import URLLoadingAgent
///
/// exit(await BackgroundAgent.run(Array(CommandLine.arguments.dropFirst())))
/// ```
public enum BackgroundAgent {
    /// Carries out the transfers of the user's programs, until it has been idle for a minute or receives SIGTERM or
    /// SIGINT.
    /// - Parameter arguments: the command line; `--help` lists the options.
    /// - Returns: an exit code: 0; 64 for invalid arguments; 69 if `--drain` finds no agent; 75 if another agent uses
    ///   the journal; 70 if the journal or the socket cannot be opened.
    public static func run(_ arguments: [String]) async -> Int32 {
        switch AgentOptions.parse(arguments) {
        case .failure(let error):
            log("\(error.words); --help lists the options")
            return 64
        case .success(let options) where options.wantsHelp:
            write(AgentOptions.help, to: 1)
            return 0
        case .success(let options):
            return await AgentProcess(options).run()
        }
    }

    static func log(_ line: String) { write("url-loading-agent: \(line)\n", to: 2) }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        // A failure to write the log cannot be reported anywhere.
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }
}
