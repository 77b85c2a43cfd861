/// The command line of the agent.
struct AgentOptions: Sendable, Equatable {
    /// Where programs connect; `nil` for the state folder's own, unless a listening socket was given.
    var socket: String?
    /// A descriptor that listens already.
    var listener: Int32?
    /// Where the journal and the agent's files are; `nil` for the user's state folder.
    var folder: String?
    /// Seconds without anything to do after which the agent exits; `nil` for never.
    var idle: Double? = 60
    var wantsHelp = false

    static let help = """
        url-loading-agent carries out downloads and uploads of programs that use URLLoading, also while those do not run.
        Programs start it themselves, or a service manager does; nobody has to.

          --socket PATH     where programs connect
          --listener N      a descriptor that listens already
          --folder PATH     where the journal is; $XDG_STATE_HOME/url-loading by default
          --idle SECONDS    exit when there was nothing to do for so long; 60 by default
          --foreground      never exit for lack of work

        """

    /// - Returns: the options, or what is wrong, in words.
    static func parse(_ arguments: [String]) -> Result<AgentOptions, AgentUsageError> {
        var options = AgentOptions()
        var rest = arguments[...]
        while let word = rest.popFirst() {
            switch word {
            case "--help", "-h": options.wantsHelp = true
            case "--foreground": options.idle = nil
            case "--socket", "--folder":
                guard let path = rest.popFirst(), path.hasPrefix("/") else {
                    return .failure(.init(words: "\(word) needs an absolute path"))
                }
                if word == "--socket" { options.socket = path } else { options.folder = path }
            case "--listener":
                guard let number = rest.popFirst().flatMap({ Int32($0) }), number >= 0 else {
                    return .failure(.init(words: "--listener needs the number of a descriptor"))
                }
                options.listener = number
            case "--idle":
                guard let seconds = rest.popFirst().flatMap({ Double($0) }), seconds >= 0 else {
                    return .failure(.init(words: "--idle needs a number of seconds"))
                }
                options.idle = seconds
            default: return .failure(.init(words: "there is no option \(word)"))
            }
        }
        return .success(options)
    }
}

struct AgentUsageError: Error, Equatable { let words: String }
