import Glibc
import URLLoading
import URLLoadingIO

/// The background agent as a program: `url-loading-agent`, or a program that is its own agent.
///
/// ```swift
/// import URLLoadingAgent
///
/// exit(await BackgroundAgent.run(Array(CommandLine.arguments.dropFirst())))
/// ```
public enum BackgroundAgent {
    /// Carries out the transfers of the user's programs until there is nothing to do for a minute, or SIGTERM or SIGINT
    /// comes.
    /// - Parameter arguments: `--help` lists them.
    /// - Returns: an exit code: 0; 64 for arguments that make no sense; 75 if another agent has the journal; 70 if the
    ///   journal or the socket cannot be had.
    public static func run(_ arguments: [String]) async -> Int32 {
        switch AgentOptions.parse(arguments) {
        case .failure(let error):
            say("\(error.words); --help lists the options")
            return 64
        case .success(let options) where options.wantsHelp:
            write(AgentOptions.help, to: 1)
            return 0
        case .success(let options):
            return await AgentProcess(options).run()
        }
    }

    static func say(_ line: String) { write("url-loading-agent: \(line)\n", to: 2) }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        // Where a log cannot be written there is nobody to tell.
        _ = Glibc.write(descriptor, bytes, bytes.count)
    }
}
