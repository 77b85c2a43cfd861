// SPDX-License-Identifier: Apache-2.0

// `urlload wget …`: wget's grammar. It is separate from curl's because `-c`, `-i`, `-N` and `-O` mean other things
// there.

import URLLoading

extension OptionTable {
    static let wget = OptionTable(
        tool: "wget", grammar: .wget, rules: wgetFiles + wgetRequest + wgetAccess + wgetLimits + wgetOutput,
        others: ForeignOption.wget
    ) { options in
        options.request.expandsPatterns = false
        // wget saves to files named after the URLs.
        if options.outputs.isEmpty { options.saving.namesAll = true }
        // As in wget, -P is for files that are named after their URLs, and not for that of -O.
        if !options.outputs.isEmpty { options.saving.folder = nil }
        // As in wget, a file in folders of its own is replaced.
        if options.saving.collision == .replace, !options.saving.comparesTime, options.outputs.isEmpty,
            options.saving.folders?.isForced != true
        {
            options.saving.collision = .number
        }
        if !options.saving.keepsOwnTime { options.saving.setsTime = true }
        options.saving.namesWithQuery = true
        if !options.output.failsWithBody { options.output.failsOnStatus = true }
        if options.request.acceptsCompressed == nil { options.request.acceptsCompressed = false }
        if options.request.asksForHead { options.outputs = [.nothing] }
        options.retries.continuesBodies = true
        options.retries.repeatsAnyMethod = options.given.contains("tries")
        if !options.retries.repeatsAnyMethod { options.retries.count = 19 }
    }

    private static let wgetFiles: [OptionRule] = [
        OptionRule(.output, "O", "output-document", "FILE", "write all bodies to FILE; - is standard output") {
            $0.outputs = [$1 == "-" ? .standardOutput : .file($1)]
            $0.output.destination = $0.outputs[0]
            $0.saving.joinsAll = true
        },
        OptionRule(.output, "P", "directory-prefix", "DIR", "write the files into DIR") {
            ($0.saving.folder, $0.saving.makesFolders) = ($1, true)
        },
        OptionRule(.output, "c", flag: "continue", "resume a partial file") { $0.output.resuming = .always },
        OptionRule(.output, "N", flag: "timestamping", "load only if newer than the existing file") {
            ($0.saving.comparesTime, $0.saving.collision) = (true, .replace)
        },
        OptionRule(.output, nil, flag: "no-clobber", "do not load if the file exists") {
            $0.saving.collision = .skip
        },
        OptionRule(
            .output, "n", "n", "c|v|d|H|p",
            "-nc: --no-clobber, -nv: --no-verbose, -nH: see -x; -nd and -np are the default"
        ) {
            (options, text) throws(UsageError) in
            switch text {
            case "c": options.saving.collision = .skip
            case "d": options.changeFolders { $0.isForced = false }
            case "H": options.changeFolders { $0.hasHost = false }
            case "v", "p": break
            default: throw UsageError("there is no option -n\(text)")
            }
        },
        OptionRule(.output, "i", "input-file", "LIST", "load the URLs in LIST too, one a line; - is standard input") {
            $0.saving.inputLists.append($1)
        },
        OptionRule(
            .output, nil, switch: "content-disposition", "use the file name that the server suggests",
            \.saving.takesServersName),
        OptionRule(
            .output, nil, switch: "trust-server-names", "name the file after the URL that redirects lead to",
            \.saving.takesLastURL),
        OptionRule(.output, "x", flag: "force-directories", "write into folders like those of the URL: HOST/a/b/FILE") {
            $0.changeFolders { $0.isForced = true }
            $0.saving.makesFolders = true
        },
        OptionRule(.output, nil, flag: "no-host-directories", "with -x: no folder for the host") {
            $0.changeFolders { $0.hasHost = false }
        },
        OptionRule(.output, nil, flag: "protocol-directories", "with -x: a folder for the scheme") {
            $0.changeFolders { $0.hasScheme = true }
        },
        OptionRule(.output, nil, "cut-dirs", "N", "with -x: leave out the first N folders of the path") {
            (options, text) throws(UsageError) in
            let count = try OptionValue.count(text, "--cut-dirs", from: 0)
            options.changeFolders { $0.cut = count }
        },
        OptionRule(.output, nil, flag: "no-use-server-timestamps", "the file has the time when it was written") {
            $0.saving.keepsOwnTime = true
        },
        OptionRule(.output, nil, "start-pos", "OFFSET", "begin at this offset") { (options, text) throws(UsageError) in
            options.output.resuming = try OptionValue.resuming(text, "--start-pos")
        },
        OptionRule(.output, nil, flag: "no-directories", "create no folders (default)") {
            $0.changeFolders { $0.isForced = false }
        },
    ]

    private static let wgetRequest: [OptionRule] = [
        OptionRule(
            .request, nil, "header", "'Name: value'", "send this field; 'Name:' sends none; '' forgets those before"
        ) {
            (options, text) throws(UsageError) in
            guard !text.isEmpty else {
                (options.request.fields, options.request.removedFields) = (Headers(), [])
                return
            }
            let (name, value) = try OptionValue.field(text, "--header")
            if value.isEmpty {
                options.request.removedFields.append(name)
            } else {
                options.request.fields.append(name, value)
            }
        },
        OptionRule(.request, "U", "user-agent", "TEXT", "send this User-Agent; empty for none") {
            $0.request.userAgent = $1
        },
        OptionRule(.request, nil, "referer", "URL", "send this Referer") { $0.data.referer = $1 },
        OptionRule(.request, nil, "post-data", "DATA", "send DATA by POST") { $0.request.payloads = [.text($1)] },
        OptionRule(.request, nil, "post-file", "FILE", "send FILE by POST") { $0.request.payloads = [.file($1)] },
        OptionRule(.request, nil, "body-data", "DATA", "send DATA by --method") { $0.request.payloads = [.text($1)] },
        OptionRule(.request, nil, "body-file", "FILE", "send FILE by --method") { $0.request.payloads = [.file($1)] },
        OptionRule(
            .request, nil, "method", "METHOD", "the method, default GET, or POST with --post-data and --post-file"
        ) {
            (options, text) throws(UsageError) in
            let method = Method(text)
            guard method.isValid else { throw UsageError("\(text) is no method") }
            options.request.method = method
        },
        OptionRule(.request, nil, switch: "spider", "ask for the head only, and write nothing", \.request.asksForHead),
        OptionRule(.request, nil, "compression", "auto|gzip|none", "ask for a compressed body") {
            $0.request.acceptsCompressed = $1 != "none"
        },
        OptionRule(.redirects, nil, "max-redirect", "N", "follow at most N, default 20") {
            (options, text) throws(UsageError) in
            options.redirects.maximum = try OptionValue.count(text, "--max-redirect", from: 0)
        },
        OptionRule(.request, nil, flag: "no-cache", "send Cache-Control: no-cache, so that caches validate") {
            $0.request.fields.append(.cacheControl, "no-cache")
        },
        OptionRule(.request, nil, granted: "no-http-keep-alive", "ignored: connections end with the command"),
    ]

    private static let wgetAccess: [OptionRule] = [
        OptionRule(.login, nil, "user", "USER", "the user name") { $0.login.user = $1 }.also("http-user", "ftp-user"),
        OptionRule(.login, nil, "password", "PASSWORD", "the password") { $0.login.password = $1 }
            .also("http-password", "ftp-password"),
        OptionRule(.login, nil, granted: "ask-password", "ask for the password (unless --password gives it)"),
        OptionRule(.login, nil, flag: "auth-no-challenge", "send user and password preemptively (Basic)") {
            $0.login.allow(.basic)
        },
        OptionRule(.memory, nil, "load-cookies", "FILE", "read cookies from FILE") {
            $0.memory.cookieInputs.append($1)
        },
        OptionRule(.memory, nil, "save-cookies", "FILE", "write cookies to FILE") { $0.memory.cookieOutput = $1 },
        OptionRule(.memory, nil, granted: "keep-session-cookies", "save session cookies too (always)"),
        OptionRule(.memory, nil, granted: "no-cookies", "ignored: cookies are stored only with --save-cookies"),
        OptionRule(.memory, nil, "hsts-file", "FILE", "read and write the HSTS hosts") {
            $0.memory.hstsFile = $1
        },
        OptionRule(.memory, nil, granted: "no-hsts", "store no HSTS hosts (default)"),
        OptionRule(.security, nil, flag: "no-check-certificate", "do not verify certificates") {
            $0.tls.isInsecure = true
        },
        OptionRule(.security, nil, "ca-certificate", "FILE", "trust the issuers in this PEM file, and no others") {
            $0.tls.rootsFile = $1
        },
        OptionRule(.security, nil, "certificate", "FILE", "the client's certificate") { $0.tls.certificateFile = $1 },
        OptionRule(.security, nil, "private-key", "FILE", "its private key") { $0.tls.keyFile = $1 },
        OptionRule(.connection, nil, flag: "no-proxy", "use no proxy") { $0.networks.forbidsProxies = true },
        OptionRule(.connection, "4", flag: "inet4-only", "IPv4 alone") { $0.networks.family = .ipv4 },
        OptionRule(.connection, "6", flag: "inet6-only", "IPv6 alone") { $0.networks.family = .ipv6 },
    ]

    private static let wgetLimits: [OptionRule] = [
        OptionRule(.retries, "t", "tries", "N", "at most N attempts, default 20; 0 for no limit") {
            (options, text) throws(UsageError) in
            let count = text == "inf" ? 0 : try OptionValue.count(text, "--tries", from: 0)
            options.retries.count = count == 0 ? .max : count - 1
        },
        OptionRule(
            .retries, nil, switch: "retry-connrefused", "also after a refused connection, or with no way to the host",
            \.retries.includesRefused),
        OptionRule(
            .retries, nil, switch: "retry-on-host-error", "also after a failed lookup of the host",
            \.retries.includesHosts),
        OptionRule(.retries, nil, "retry-on-http-error", "LIST", "also after these statuses, such as 429,503") {
            (options, text) throws(UsageError) in
            options.retries.statuses = try OptionValue.statuses(text, "--retry-on-http-error")
        },
        OptionRule(
            .retries, nil, "waitretry", "SECONDS", "wait 1, 2, 3 … seconds before attempts, at most this; default 10"
        ) { (options, text) throws(UsageError) in
            options.retries.delay = try OptionValue.secondsOrNone(text, "--waitretry") ?? .zero
        },
        OptionRule(.limits, "T", "timeout", "SECONDS", "idle timeout: end a load when the server is silent") {
            (options, text) throws(UsageError) in
            options.timeouts.idle = try OptionValue.secondsOrNone(text, "--timeout")
            options.timeouts.connect = options.timeouts.idle
        }.also("read-timeout", "dns-timeout"),
        OptionRule(.limits, nil, "connect-timeout", "SECONDS", "the connect timeout") {
            (options, text) throws(UsageError) in
            options.timeouts.connect = try OptionValue.secondsOrNone(text, "--connect-timeout")
        },
        OptionRule(.limits, nil, "limit-rate", "SPEED", "maximum bytes per second: 100k, 2m") {
            (options, text) throws(UsageError) in
            options.limits.rate = try OptionValue.speed(text, "--limit-rate")
        },
        OptionRule(.limits, "w", "wait", "SECONDS", "wait that long between loads") {
            (options, text) throws(UsageError) in
            options.shared.interval = try OptionValue.secondsOrNone(text, "--wait")
        },
    ]

    private static let wgetOutput: [OptionRule] = [
        OptionRule(.output, "q", switch: "quiet", "no progress, no messages", \.isSilent),
        OptionRule(.output, nil, flag: "no-verbose", "no progress") { $0.shared.showsMeter = false },
        OptionRule(.logging, "v", granted: "verbose", "progress and a summary (default)"),
        OptionRule(.logging, "d", flag: "debug", "connections, request and response heads") { $0.trace = .heads },
        OptionRule(.output, "S", flag: "server-response", "write the response heads to standard error") {
            $0.output.headFile = "/dev/stderr"
        },
        OptionRule(.output, "o", "output-file", "FILE", "write messages to FILE") { $0.shared.errorFile = $1 },
        OptionRule(.output, nil, "progress", "KIND", "ignored: there is one kind of bar") { _, _ in },
        OptionRule(.output, nil, granted: "show-progress", "show a bar (on a terminal)"),
        OptionRule(
            .output, nil, switch: "content-on-error", "write the body of a 4xx or 5xx too", \.output.failsWithBody),
        OptionRule(.output, nil, flag: "save-headers", "write the response heads before the body") {
            $0.output.includesHead = true
        },
        OptionRule(.other, "e", "execute", "COMMAND", "robots=off: no robots.txt is read (always)") {
            (_, text) throws(UsageError) in
            guard text.lowercased().filter({ !$0.isWhitespace }) == "robots=off" else {
                throw UsageError("-e takes robots=off alone, not \(text); its other commands have options")
            }
        },
        OptionRule(.other, nil, granted: "no-config", "read no config file (always)"),
        OptionRule(.other, "h", flag: "help", "this text") { $0.wantsHelp = true },
        OptionRule(.other, "V", flag: "version", "the version") { $0.wantsVersion = true },
    ]
}

extension Options {
    fileprivate mutating func changeFolders(_ change: (inout URLFolders) -> Void) {
        var folders = saving.folders ?? URLFolders()
        change(&folders)
        saving.folders = folders
    }
}

extension ForeignOption {
    static let wget: [ForeignOption] = [
        ForeignOption(
            "--mirror -m --recursive -r --page-requisites -p --convert-links -k --level -l --no-parent --span-hosts -H "
                + "--accept -A --reject -R --domains -D --follow-ftp --relative -L --adjust-extension -E",
            near: "-i LIST", "pages are not searched for links"),
        ForeignOption("--background -b", near: "'&' of the shell"),
        ForeignOption("--append-output -a", near: "-o"),
        ForeignOption("--quota -Q", near: "--max-time of the other grammar"),
        ForeignOption("--random-wait", near: "--wait"),
        ForeignOption("--warc-file --input-metalink --metalink-over-http"),
        ForeignOption("--secure-protocol --ciphers --ca-directory --crl-file --pinnedpubkey", near: "--ca-certificate"),
        ForeignOption("--bind-address", near: "--interface of the other grammar"),
        ForeignOption("--restrict-file-names"),
    ]
}
