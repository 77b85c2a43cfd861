// What `--help` and `--version` print, and what is printed after a mistake.

enum Help {
    static let versionNumber = "0.1"
    static let version = "urlload " + versionNumber
    static let insecureWarning =
        "WARNING: --insecure: no certificate is checked. "
        + "Any machine between this one and the server can read and change everything."

    static let text = """
        urlload [options] URL…
        urlload wget [options] URL…
        urlload http [METHOD] URL [NAME=VALUE…]
        urlload tour [STEP…]
        urlload tls HOST[:PORT]
        urlload cache ls|show|why|rm --cache DIR
        urlload har FILE [--report OUT.html]
        urlload top SOCKET

        Loads URLs and writes their bodies to standard output. Redirects are followed. A URL without
        a scheme is loaded with https, one of this machine (localhost, 127.0.0.1, [::1]) with http.

          urlload https://example.org/                        print it
          urlload -O https://example.org/a.tar.gz             save it as a.tar.gz
          urlload -d name=Ada https://example.org/form        POST a form
          urlload -H 'Content-Type: application/json' -d @order.json https://example.org/orders
          urlload -F title=Notes -F 'file=@a.pdf;type=application/pdf' https://example.org/upload
          urlload --sse https://example.org/events            follow events, for ever
          urlload --summary json https://example.org/ | jq .timings      measure it
          urlload --trace https://example.org/                see every byte
          urlload tls example.org                             see its certificates, and what they are worth
          urlload ws wss://example.org/chat                   talk: lines in, messages out
          urlload tour                                        see what the library can do


        """ + options(of: .curl) + """

            Files (-o, -O) are written under a temporary name in the same folder and renamed when complete,
            so FILE is either the old one or the whole new one. The mode follows the umask, or is that of
            the file replaced. A device or a pipe is written to directly.
            What came of a file stays when a load ends early, be it by Ctrl-C, and the message says how to go on: -C takes
            up what the server can check (ETag, Last-Modified), -C - also what it cannot, such as the file that another
            program has left. Such bytes are in a hidden file with notes (.FILE.urlload), or in FILE.part.
            -d sends application/x-www-form-urlencoded unless -H says another Content-Type. A file of --data-binary or -T
            is sent as it is and never held in memory; standard input and pipes are read to their end first.
            -F sends multipart/form-data. NAME=@FILE sends a file under its own name, NAME=<FILE its bytes as a
            text; ;type=TYPE and ;filename=NAME may follow, and "quotes" hold a path with a semicolon.
            --sse writes an event as lines (event:, id:, data:) and an empty one; with --summary json as an object on a
            line: type, data, lastEventID. There is no time limit but --timeout, for silence, and --max-time.
            --retry sends any method again, until a response has begun: what is lost of its body is an error.
            Retry-After is waited in addition, up to 600 seconds; --max-time counts all tries together.
            Proxies: what http_proxy, https_proxy, all_proxy and no_proxy say, unless an option does; this machine is then
            reached directly. A proxy looks up the names of the servers behind it, whatever its kind.
            Cookies: taken and sent for the length of a run, and remembered only with --cookies, -b or -c; cookies of -b a=1
            go to the hosts of the URLs given, and to no other that a redirect leads to. The file is replaced in one step.
            --summary json writes url, effectiveURL, status, version, headers, bytes, file, timings (seconds from
            the start: resolve, connect, tls, firstByte, total), reused, redirects and error. The body is
            counted and dropped unless -o or -O names a file for it.
            --trace lines: "> " sent, "< " received, "* " notes. A line stands for its bytes and CR LF; with
            "\\n" at its end for LF alone, with a lone "\\" for no line break. "\\xHH" is a byte, "\\\\" a backslash.

            Exit codes (those of curl where there is one). With several URLs: that of the first failure.

            """ + exitCodes

    /// One group of options after the other, in two columns.
    static func options(of table: OptionTable) -> String {
        let width = table.rules.map(\.signature.count).max() ?? 0
        var text = ""
        for group in OptionRule.Group.allCases {
            let rules = table.rules.filter { $0.group == group }
            if rules.isEmpty { continue }
            text += group.rawValue + "\n"
            for rule in rules { text += "  " + padded(rule.signature, width) + "  " + rule.help + "\n" }
            text += "\n"
        }
        return String(text.dropLast())
    }

    private static var exitCodes: String {
        ExitCode.allCases.map { "  " + padded("\($0.rawValue)", 4) + $0.meaning + "\n" }.joined()
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
