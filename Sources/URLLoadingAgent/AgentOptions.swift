// SPDX-License-Identifier: Apache-2.0

/// The command line of the agent.
struct AgentOptions: Sendable, Equatable {
    /// The path of the socket for programs; `nil` for the one in the state folder, unless a listening socket was
    /// passed.
    var socket: String?
    /// A descriptor that is listening already.
    var listener: Int32?
    /// The folder of the journal and of the agent's files; `nil` for the user's state folder.
    var folder: String?
    /// The address of a database that agents share; `nil` for the journal in the folder.
    var journal: JournalAddress?
    /// The folder in which agents that share a journal keep the files of transfers; `nil` for one in `folder`.
    var files: String?
    /// The seconds of idleness after which the agent exits; `nil` for never.
    var idle: Double? = 60
    /// Whether to ask the agent that listens to take no more work, and to wait until it has exited.
    var drains = false
    var wantsHelp = false

    static let help = """
        url-loading-agent carries out the downloads and uploads of programs that use URLLoading, also while those
        programs do not run. Programs or a service manager start it; it needs no manual start.

          --socket PATH     the socket for programs
          --listener N      the number of a descriptor that is listening already
          --folder PATH     the folder of the journal; $XDG_STATE_HOME/url-loading by default
          --journal ADDRESS a PostgreSQL database that agents share, in place of the journal in the folder:
                            postgresql://host/name. One with a password is taken from $URLLOADING_JOURNAL only
          --files PATH      a folder that agents with one --journal share, on one machine or several, for the files of
                            transfers; by default each agent has its own. $URLLOADING_FILES names it, too
          --idle SECONDS    exit after this time without work; 60 by default
          --foreground      do not exit when idle
          --drain           ask the agent at the socket, or in the folder, to take no more work: it stops what can be
                            continued later, ends the rest, and exits; returns 0 then, and 69 if there is no agent

        """

    /// - Returns: the options, or a description of the error.
    static func parse(_ arguments: [String]) -> Result<AgentOptions, AgentUsageError> {
        var options = AgentOptions()
        var rest = arguments[...]
        while let word = rest.popFirst() {
            switch word {
            case "--help", "-h": options.wantsHelp = true
            case "--foreground": options.idle = nil
            case "--drain": options.drains = true
            case "--socket", "--folder", "--files":
                guard let path = rest.popFirst(), path.hasPrefix("/") else {
                    return .failure(.init(words: "\(word) needs an absolute path"))
                }
                switch word {
                case "--socket": options.socket = path
                case "--folder": options.folder = path
                default: options.files = path
                }
            case "--journal":
                guard let text = rest.popFirst(), let address = JournalAddress(text) else {
                    return .failure(.init(words: "--journal needs an address such as postgresql://host/name"))
                }
                guard !address.hasPassword else {
                    return .failure(
                        .init(
                            words: "--journal takes no address with a password, which other users could see: "
                                + "set URLLOADING_JOURNAL, or use libpq's password file"))
                }
                options.journal = address
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

/// The address of a journal that agents share.
struct JournalAddress: Sendable, Equatable, CustomStringConvertible {
    /// As libpq takes it.
    let text: String

    /// The environment variable that has the address if no option has it.
    static let variable = "URLLOADING_JOURNAL"

    /// Fails for an address of anything but PostgreSQL, and for one of which libpq would take a part of a password for
    /// something else: for it, the user's name and the password end at the first `@` before the first `/`, also behind
    /// a `?`. In other places `@` is written `%40`, and in a password `/` and `?` are `%2F` and `%3F`.
    init?(_ text: String) {
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else { return nil }
        self.text = text
        let path = rest.dropFirst(authority.utf8.count).prefix { $0 != UInt8(ascii: "?") }
        let marks = authority.utf8.count { $0 == UInt8(ascii: "@") }
        guard marks == 0 || marks == 1 && !authority.contains("?"), !path.contains(UInt8(ascii: "@")) else {
            return nil
        }
    }

    /// The address behind `//`.
    private var rest: Substring.UTF8View { text.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst(3) }
    private var authority: String { String(decoding: rest.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self) }

    /// Whether the address contains a password: behind the user's name, or as a parameter.
    var hasPassword: Bool {
        let user = authority.firstIndex(of: "@").map { authority[..<$0] } ?? ""
        let names = text.drop { $0 != "?" }.dropFirst().split(separator: "&").map { parameter in
            parameter.prefix { $0 != "=" }.lowercased()
        }
        // libpq decodes names, too: one with `%` may be that of a password.
        return user.contains(":") || names.contains { $0.hasSuffix("password") || $0.contains("%") }
    }

    /// Without anything that may be secret.
    var description: String { "PostgreSQL" }
}

struct AgentUsageError: Error, Equatable { let words: String }
