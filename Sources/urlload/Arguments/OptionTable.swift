// Every option of the command, in the order of the help. Where curl has an option of the same
// meaning it has the same name here.

import URLLoading

enum OptionTable {
    static let rules: [OptionRule] =
        output + request + redirects + way + login + memory + security + trust + cache + limits + retries + watching
        + other

    private static let output: [OptionRule] = [
        OptionRule(.output, "o", "output", "FILE", "write the body to FILE once it is complete; - is standard output") {
            $0.destination = $1 == "-" ? .standardOutput : .file($1)
        },
        OptionRule(.output, "O", flag: "remote-name", "write it to a file here, named after the URL") {
            $0.destination = .namedAfterURL
        },
        OptionRule(
            .output, "C", flag: "continue",
            "go on with what an earlier run has left of FILE (-o, -O); -T to ftp: with what is there"
        ) {
            $0.continues = true
        },
        OptionRule(.output, "i", flag: "include", "write the response head before the body") { $0.includesHead = true },
        OptionRule(.output, "f", flag: "fail", "treat 4xx and 5xx as a failure: no body, exit code 22") {
            $0.failsOnStatus = true
        },
        OptionRule(.output, nil, flag: "json", "write one JSON object per URL instead of the body") {
            $0.printsJSON = true
        },
        OptionRule(.output, nil, flag: "sse", "write server-sent events as they come, and connect again when they end")
        { $0.printsEvents = true },
        OptionRule(.output, "s", flag: "silent", "no progress, no messages; the exit code remains") {
            $0.isSilent = true
        },
    ]

    private static let request: [OptionRule] = [
        OptionRule(
            .request, "X", "request", "METHOD",
            "GET unless said otherwise; POST with -d and -F, PUT with -T, HEAD with -I"
        ) { (options, text) throws(UsageError) in
            let method = Method(text)
            guard method.isValid else { throw UsageError("\(text) is no method") }
            options.method = method
        },
        OptionRule(
            .request, "d", "data", "DATA|@FILE",
            "send DATA, or the bytes of FILE (@- is standard input); several are joined with &"
        ) {
            $0.payloads.append($1.hasPrefix("@") ? .file(String($1.dropFirst())) : .text($1))
        },
        OptionRule(
            .request, "T", "upload-file", "FILE",
            "send FILE as it is, with PUT unless -X says otherwise; - is standard input"
        ) {
            $0.upload = $1
        },
        OptionRule(
            .request, nil, "resumable", "STATEFILE",
            "with -T: go on where a lost connection or an earlier run left it; STATEFILE remembers"
        ) {
            $0.uploadState = $1
        },
        OptionRule(
            .request, "F", "form", "NAME=VALUE|@FILE",
            "send a form with this field, or file (;type= ;filename=); may be repeated"
        ) { (options, text) throws(UsageError) in
            options.formFields.append(try FormField(text))
        },
        OptionRule(.request, nil, "form-string", "NAME=VALUE", "the same, with VALUE as it is, whatever it begins with")
        { (options, text) throws(UsageError) in
            options.formFields.append(try .literal(text))
        },
        OptionRule(.request, "H", "header", "'Name: value'", "send this field; may be repeated") {
            (options, text) throws(UsageError) in
            let (name, value) = try OptionValue.field(text)
            options.fields.append(name, value)
        },
        OptionRule(.request, "A", "user-agent", "TEXT", "send this User-Agent; empty for none") { $0.userAgent = $1 },
        OptionRule(.request, "I", flag: "head", "ask for the head only, and write it") { $0.asksForHead = true },
        OptionRule(
            .request, nil, flag: "compressed",
            "ask for a compressed body and write it expanded; the default without -o and -O"
        ) { $0.acceptsCompressed = true },
        OptionRule(.request, nil, flag: "no-compressed", "write the body as it was sent; the default with -o and -O") {
            $0.acceptsCompressed = false
        },
    ]

    private static let redirects: [OptionRule] = [
        OptionRule(.redirects, "L", flag: "location", "follow redirects (default)") { $0.followsRedirects = true },
        OptionRule(.redirects, nil, flag: "no-location", "take a redirect as the result") {
            $0.followsRedirects = false
        },
        OptionRule(.redirects, nil, "max-redirects", "N", "follow at most N, default 20; more is exit code 47") {
            (options, text) throws(UsageError) in
            options.maximumRedirects = try OptionValue.count(text, "--max-redirects", from: 0)
        },
    ]

    private static let security: [OptionRule] = [
        OptionRule(.security, nil, "cacert", "FILE", "trust the issuers in this PEM file, and no others") {
            $0.rootsFile = $1
        },
        OptionRule(.security, nil, "tls-min", "1.2|1.3", "the lowest TLS version accepted, default 1.2") {
            (options, text) throws(UsageError) in
            options.minimumTLS = try OptionValue.tlsVersion(text, "--tls-min")
        },
        OptionRule(.security, nil, "tls-max", "1.2|1.3", "the highest TLS version offered, default 1.3") {
            (options, text) throws(UsageError) in
            options.maximumTLS = try OptionValue.tlsVersion(text, "--tls-max")
        },
        OptionRule(.security, nil, flag: "ssl-reqd", "ftp begins TLS before anything is said, or ends (AUTH TLS)") {
            $0.ftp.security = .explicit
        },
        OptionRule(
            .security, "k", flag: "insecure", "check no certificate: anybody on the way can read and change everything"
        ) {
            $0.isInsecure = true
        },
    ]

    private static let limits: [OptionRule] = [
        OptionRule(.limits, nil, "timeout", "SECONDS", "give up when the server is silent that long, default 60") {
            (options, text) throws(UsageError) in
            options.idleTimeout = try OptionValue.seconds(text, "--timeout")
        },
        OptionRule(
            .limits, nil, "connect-timeout", "SECONDS",
            "give up when connecting takes longer: name, proxies and TLS included"
        ) { (options, text) throws(UsageError) in
            options.connectTimeout = try OptionValue.seconds(text, "--connect-timeout")
        },
        OptionRule(.limits, nil, "expect100-timeout", "SECONDS", "how long a body waits for the server's 100") {
            (options, text) throws(UsageError) in
            options.expectContinueTimeout = try OptionValue.seconds(text, "--expect100-timeout")
        },
        OptionRule(.limits, "m", "max-time", "SECONDS", "give up when the whole load takes longer") {
            (options, text) throws(UsageError) in
            options.totalTimeout = try OptionValue.seconds(text, "--max-time")
        },
        OptionRule(
            .limits, nil, "max-connections", "N", "connections per host, default 6; with -O that many URLs load at once"
        ) { (options, text) throws(UsageError) in
            options.maximumConnections = try OptionValue.count(text, "--max-connections", from: 1)
        },
        OptionRule(.limits, nil, flag: "http1.1", "speak HTTP/1.1 only") { $0.httpVersions = .http1Only },
        OptionRule(.limits, nil, flag: "http2", "let https servers choose HTTP/2 (default)") {
            $0.httpVersions = .automatic
        },
        OptionRule(.limits, nil, flag: "http2-prior-knowledge", "speak HTTP/2 only, without asking; over http as well")
        {
            $0.httpVersions = .http2PriorKnowledge
        },
    ]

    private static let retries: [OptionRule] = [
        OptionRule(
            .retries, nil, "retry", "N",
            "up to N more after a time-out, a failed look-up, 408, 429, 500, 502, 503 or 504"
        ) { (options, text) throws(UsageError) in
            options.retries = try OptionValue.count(text, "--retry", from: 0)
        },
        OptionRule(.retries, nil, flag: "retry-connrefused", "with --retry: after a refused connection too") {
            $0.retriesRefused = true
        },
        OptionRule(
            .retries, nil, "retry-delay", "SECONDS", "wait that long before each; otherwise 1, 2, 4 … 600 at most"
        ) { (options, text) throws(UsageError) in
            options.retryDelay = try OptionValue.seconds(text, "--retry-delay")
        },
        OptionRule(.retries, nil, "retry-max-time", "SECONDS", "begin none later than that") {
            (options, text) throws(UsageError) in
            options.retryTime = try OptionValue.seconds(text, "--retry-max-time")
        },
    ]

    private static let watching: [OptionRule] = [
        OptionRule(.watching, "v", flag: "verbose", "connections, request and response heads, on standard error") {
            if $0.trace == .off { $0.trace = .heads }
        },
        OptionRule(.watching, nil, flag: "trace", "every byte sent and received, on standard error") {
            $0.trace = .everything
        },
        OptionRule(.watching, nil, flag: "trace-secrets", "show passwords, tokens and cookies in both, and in --har") {
            $0.showsSecrets = true
        },
        OptionRule(.watching, nil, "har", "FILE", "write every transaction, its times and bytes, to FILE (HAR 1.2)") {
            $0.archiveFile = $1
        },
    ]

    private static let other: [OptionRule] = [
        OptionRule(.other, "h", flag: "help", "this text") { $0.wantsHelp = true },
        OptionRule(.other, "V", flag: "version", "the version") { $0.wantsVersion = true },
    ]
}
