// SPDX-License-Identifier: Apache-2.0

// The texts of `--help`, with and without a topic, and of `--version`, and the warning of `--insecure`.

enum Help {
    static let versionNumber = "0.2"
    static let version = "urlload " + versionNumber
    static let insecureWarning =
        "WARNING: --insecure: no certificate is checked. "
        + "Any machine between this one and the server can read and change everything."

    /// `--help`: what fits on a screen.
    static let short =
        """
        urlload [options] URL…      loads URLs, and writes their bodies to standard output

          urlload https://example.org/                        print it
          urlload -O https://example.org/a.tar.gz             save it as a.tar.gz
          urlload -d name=Ada https://example.org/form        POST a form
          urlload -v https://example.org/                     see connection, TLS version and heads

        A URL without a scheme is loaded with https, one of this machine (localhost, 127.0.0.1, [::1]) with http.

        The options needed first:

        """ + columns(first.compactMap { name in OptionTable.curl.rules.first { $0.long == name } })
        + "\nCommands, each with its own --help:\n"
        + commands.map { "  " + padded("urlload " + $0.0, 14) + "  " + $0.1 + "\n" }.joined() + """

            urlload --help all          every option, and the exit codes
            urlload --help CATEGORY     \(listed(categories, width: 66).replacing("\n", with: "\n" + indent))
            urlload --help OPTION       one option, such as -o or --retry

            """

    /// The commands, which the first argument may name, with a description.
    static let commands = [
        ("http", "build a request as httpie does"), ("wget", "load files as wget does"),
        ("ws", "talk through a WebSocket"), ("tls", "show a server's certificates"), ("cache", "look into a cache"),
        ("bg", "load in the background, also after the end of this command"), ("har", "draw an HTTP Archive"),
        ("top", "watch the session of a running program"),
        ("tour", "see what the library can do"),
    ]

    /// The long names of the options that people need first.
    static let first = [
        "output", "remote-name", "continue-at", "header", "data", "form", "upload-file", "user", "fail", "verbose",
    ]

    /// The words that `--help` takes, besides `all` and options.
    static let categories = OptionRule.Group.allCases.map(\.category) + ["codes"]

    private static let indent = String(repeating: " ", count: 28)

    /// Returns the text of `--help` with a topic: `all`, a category, or an option.
    static func text(about topic: String) throws(UsageError) -> String {
        if topic.isEmpty { return short }
        if topic.hasPrefix("-") { return try text(aboutOption: topic) }
        switch topic {
        case "all": return text
        case "category", "categories": return listed(categories, width: 80) + "\n"
        case "codes": return exitCodesText
        default: break
        }
        if let group = OptionRule.Group.allCases.first(where: { $0.category == topic || $0.keywords.contains(topic) }) {
            let notes = notes[group].map { "\n" + $0 } ?? ""
            return options(of: .curl, in: group) + notes
        }
        let known = categories + ["all"] + OptionRule.Group.allCases.flatMap(\.keywords)
        let hint = EditDistance.nearest(to: topic, among: known).map { "; did you mean \($0)?" } ?? ""
        throw UsageError(
            "--help has no category \(topic)\(hint)\nCategories: all, \(categories.joined(separator: ", "))")
    }

    private static func text(aboutOption option: String) throws(UsageError) -> String {
        let name = String(option.drop { $0 == "-" })
        let table = OptionTable.curl
        var found: OptionRule?
        if !option.hasPrefix("--"), name.count == 1 {
            found = table.rules.first { $0.short == name.first }
        } else {
            found = try table.rule(long: name)
            if found == nil { found = try table.undone(name) }
        }
        guard let found else { throw UsageError(table.unknown(option)) }
        let others = found.aliases + (found.undo == nil ? [] : ["no-\(found.long)"])
        let also = others.isEmpty ? "" : "  also: " + others.map { "--\($0)" }.joined(separator: ", ") + "\n"
        return columns([found]) + also + "  category: \(found.group.category)\n"
    }

    /// `--help all`.
    static let text = """
        urlload [options] URL…
        urlload wget [options] URL…
        urlload http [METHOD] URL [NAME=VALUE…]
        urlload tour [STEP…]
        urlload tls HOST[:PORT]
        urlload cache ls|show|why|rm --cache DIR
        urlload bg get|put|ls|watch|pause|resume|cancel|logs|doctor
        urlload har FILE [--report OUT.html]
        urlload top SOCKET
        urlload ws URL

        Loads URLs and writes their bodies to standard output. Redirects are followed. A URL without
        a scheme is loaded with https, one of this machine (localhost, 127.0.0.1, [::1]) with http.

          urlload https://example.org/                        print it
          urlload -O https://example.org/a.tar.gz             save it as a.tar.gz
          urlload -d name=Ada https://example.org/form        POST a form
          urlload -H 'Content-Type: application/json' -d @order.json https://example.org/orders
          urlload -F title=Notes -F 'file=@a.pdf;type=application/pdf' https://example.org/upload
          urlload --sse https://example.org/events            print server-sent events until interrupted
          urlload --summary json https://example.org/ | jq .timings      measure it
          urlload --trace https://example.org/                see every byte
          urlload tls example.org                             show its certificates, and whether they are trusted
          urlload ws wss://example.org/chat                   send lines as messages, print received ones
          urlload bg get -O https://example.org/a.tar.gz      download in the background, after this command has ended
          urlload tour                                        a demonstration of the library, step by step


        """ + options(of: .curl) + "\n" + OptionRule.Group.allCases.compactMap { notes[$0] }.joined() + "\n"
        + exitCodesText

    /// What the lines of the options do not say, by their group.
    private static let notes: [OptionRule.Group: String] = [
        .output: """
        Files (-o, -O) are written under a temporary name in the same folder and renamed when complete,
        so FILE is either the old one or the whole new one. The mode follows the umask, or is that of
        the file replaced. A device or a pipe is written to directly.
        A partial file is kept when a load ends early, also by Ctrl-C, and the message says how to resume it: -C
        resumes what the server can validate (ETag, Last-Modified), -C - also what it cannot, such as a file
        that another program has left. The bytes are in a hidden file with notes (.FILE.urlload), or in FILE.part.
        --sse writes an event as lines (event:, id:, data:) and an empty one; with --summary json as an object on a
        line: type, data, lastEventID. There is no time limit but --timeout, for silence, and --max-time.
        --summary json writes url, effectiveURL, status, version, headers, bytes, file, timings (seconds from
        the start: resolve, connect, tls, firstByte, total), reused, redirects and error. The body is
        counted and dropped unless -o or -O names a file for it.

        """,
        .request: """
        -d sends application/x-www-form-urlencoded unless -H sets another Content-Type. A file of --data-binary
        or -T is sent as it is and never held in memory. -T sends standard input and pipes while it reads them;
        -d, --data-binary and -F read them to their end first.
        -F sends multipart/form-data. NAME=@FILE sends a file under its own name, NAME=<FILE its bytes as a
        text; ;type=TYPE and ;filename=NAME may follow, and "quotes" hold a path with a semicolon.

        """,
        .connection: """
        Proxies: http_proxy, https_proxy, all_proxy and no_proxy are used unless an option sets the proxy; this
        machine is then reached directly. The proxy resolves the names of servers, except socks4:// and socks5://.

        """,
        .memory: """
        Cookies: accepted and sent during a run, and stored only with --cookies, -b or -c; cookies of -b a=1 go
        to the hosts of the given URLs, and to no other host that a redirect leads to. The file is replaced in
        one step.

        """,
        .retries: """
        --retry retries any method until a response has begun; a body that breaks off is an error.
        The delay of a Retry-After field is observed too, up to 600 seconds; --max-time covers all attempts.

        """,
        .logging: """
        --trace lines: "> " sent, "< " received, "* " notes. A line stands for its bytes and CR LF; with
        "\\n" at its end for LF alone, with a lone "\\" for no line break. "\\xHH" is a byte, "\\\\" a backslash.

        """,
    ]

    private static let exitCodesText =
        "Exit codes (those of curl where there is one). With several URLs: that of the first failure.\n" + exitCodes

    /// Lists the options by group, in two columns.
    /// - Parameter only: the group to list; `nil` for all.
    static func options(of table: OptionTable, in only: OptionRule.Group? = nil) -> String {
        let width = table.rules.map(\.signature.count).max() ?? 0
        var text = ""
        for group in OptionRule.Group.allCases where only == nil || only == group {
            let rules = table.rules.filter { $0.group == group }
            if rules.isEmpty { continue }
            text += group.rawValue + "\n" + columns(rules, width) + "\n"
        }
        return String(text.dropLast())
    }

    private static func columns(_ rules: [OptionRule], _ width: Int? = nil) -> String {
        let width = width ?? rules.map(\.signature.count).max() ?? 0
        return rules.map { "  " + padded($0.signature, width) + "  " + $0.help + "\n" }.joined()
    }

    /// Returns words separated by commas, on lines of a width.
    private static func listed(_ words: [String], width: Int) -> String {
        var lines = [""]
        for (index, word) in words.enumerated() {
            let text = index < words.count - 1 ? word + "," : word
            if let last = lines.last, !last.isEmpty, last.count + 1 + text.count > width { lines.append("") }
            lines[lines.count - 1] += (lines.last?.isEmpty == false ? " " : "") + text
        }
        return lines.joined(separator: "\n")
    }

    /// Lists exit codes with their meanings; those of signals, which every grammar has, are added.
    static func exitCodes(_ codes: [(Int32, String)]) -> String {
        let signals = [ExitCode.interrupted, .terminated].map { ($0.rawValue, $0.meaning) }
        return ([(ExitCode.done.rawValue, "loaded")] + codes + signals).map { number, meaning in
            "  " + padded("\(number)", 4) + meaning + "\n"
        }.joined()
    }

    private static var exitCodes: String {
        ExitCode.allCases.map { "  " + padded("\($0.rawValue)", 4) + $0.meaning + "\n" }.joined()
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
