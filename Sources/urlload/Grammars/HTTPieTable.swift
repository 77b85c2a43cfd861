// SPDX-License-Identifier: Apache-2.0

// `urlload http …`: httpie's grammar.

import URLLoading

extension OptionTable {
    static let httpie = OptionTable(
        tool: "httpie", grammar: .httpie, rules: httpieContent + httpieOutput + httpieAccess,
        others: ForeignOption.httpie)

    private static let httpieContent: [OptionRule] = [
        OptionRule(.request, "j", flag: "json", "send items as JSON (default)") { $0.items.kind = .json },
        OptionRule(.request, "f", flag: "form", "send items as a form") { $0.items.kind = .form },
        OptionRule(.request, nil, flag: "multipart", "send items as multipart/form-data") {
            $0.items.kind = .multipart
        },
        OptionRule(.request, nil, "raw", "TEXT", "send TEXT as it is") { $0.request.payloads = [.text($1)] },
        OptionRule(.request, "I", flag: "ignore-stdin", "do not send standard input") { $0.items.ignoresInput = true },
        OptionRule(.request, nil, granted: "unsorted", "fields and names stay in their order (always)"),
    ]

    private static let httpieOutput: [OptionRule] = [
        OptionRule(.output, "h", flag: "headers", "write the response head alone") {
            $0.items.prints = PrintedParts([.head])
        }.also("header"),
        OptionRule(.output, "b", flag: "body", "write the response body alone") {
            $0.items.prints = PrintedParts([.body])
        },
        OptionRule(.output, "m", flag: "meta", "write the time to the response alone") {
            $0.items.prints = PrintedParts([.meta])
        },
        OptionRule(.output, "v", flag: "verbose", "write requests and responses; -vv: the time to the response too") {
            $0.items.verbosity += 1
        },
        OptionRule(
            .output, "p", "print", "WHAT", "h for the head, b for the body, m for the time; H and B for the request's"
        ) { (options, text) throws(UsageError) in
            guard let parts = PrintedParts(text) else {
                throw UsageError("--print takes letters of H, B, h, b and m, not \(text)")
            }
            options.items.prints = parts
        },
        OptionRule(.output, nil, flag: "all", "write the heads of responses before the last one too, such as redirects")
        { $0.items.includesAll = true },
        OptionRule(.output, nil, flag: "offline", "write the request, and connect to nothing") {
            $0.items.isOffline = true
        },
        OptionRule(
            .logging, nil, switch: "trace-secrets", "write passwords and tokens of requests too",
            \.output.showsSecrets),
        OptionRule(.output, nil, "pretty", "WHAT", "all, colors, format or none; by default all on a terminal") {
            (options, text) throws(UsageError) in
            guard let pretty = Pretty(text) else {
                throw UsageError("--pretty takes all, colors, format or none, not \(text)")
            }
            options.output.pretty = pretty
        },
        OptionRule(
            .request, nil, switch: "path-as-is", "send /../ and /./ in the URL's path as they are",
            \.request.keepsPath),
        OptionRule(.output, "s", "style", "NAME", "ignored: there is one style") { _, _ in },
        OptionRule(.output, "S", granted: "stream", "write received bytes at once (always with --pretty none)"),
        OptionRule(.output, "o", "output", "FILE", "write the body to FILE") {
            $0.outputs = [.file($1)]
            $0.output.destination = $0.outputs[0]
        },
        OptionRule(.output, "d", flag: "download", "write the body to a file that the server or the URL names") {
            $0.items.downloads = true
        },
        OptionRule(.output, "c", flag: "continue", "with -d -o FILE: resume FILE") {
            $0.output.resuming = .always
        },
        OptionRule(.output, "q", flag: "quiet", "write nothing but errors, and the file of -o or -d") {
            ($0.isSilent, $0.shared.showsErrors, $0.items.isQuiet) = (true, true, true)
        },
        OptionRule(.output, nil, flag: "check-status", "exit code 4 for 4xx, 5 for 5xx, 3 for 3xx with --no-follow") {
            $0.output.failsWithBody = true
        },
        OptionRule(.other, nil, flag: "help", "this text") { $0.wantsHelp = true },
        OptionRule(.other, nil, flag: "version", "the version") { $0.wantsVersion = true },
    ]

    private static let httpieAccess: [OptionRule] = [
        OptionRule(.login, "a", "auth", "USER:PASSWORD", "user and password; with -A bearer a token") {
            $0.items.login = $1
        },
        OptionRule(.login, "A", "auth-type", "basic|digest|bearer", "the authentication scheme; default basic") {
            (options, text) throws(UsageError) in
            guard ["basic", "digest", "bearer"].contains(text) else {
                throw UsageError("--auth-type takes basic, digest or bearer, not \(text)")
            }
            options.items.loginKind = text
        },
        OptionRule(.redirects, "F", flag: "follow", "follow redirects (default)") { $0.redirects.areFollowed = true }
            .undone { $0.redirects.areFollowed = false },
        OptionRule(.redirects, nil, "max-redirects", "N", "fail at redirect N, default 30") {
            (options, text) throws(UsageError) in
            // httpie fails when the number is reached, not when it is exceeded; 0 is no limit.
            let count = try OptionValue.count(text, "--max-redirects", from: 0)
            options.redirects.maximum = count == 0 ? 10_000 : count - 1
        },
        OptionRule(.limits, nil, "timeout", "SECONDS", "idle timeout: end a load when the server is silent") {
            (options, text) throws(UsageError) in
            options.timeouts.idle = try OptionValue.secondsOrNone(text, "--timeout")
        },
        OptionRule(.security, nil, "verify", "yes|no|FILE", "verify certificates, or with the authorities in FILE") {
            switch $1 {
            case "no", "false": $0.tls.isInsecure = true
            case "yes", "true": $0.tls.isInsecure = false
            default: $0.tls.rootsFile = $1
            }
        },
        OptionRule(.security, nil, "cert", "FILE", "the client's certificate") { $0.tls.certificateFile = $1 },
        OptionRule(.security, nil, "cert-key", "FILE", "its private key") { $0.tls.keyFile = $1 },
        OptionRule(.security, nil, "cert-key-pass", "TEXT", "the passphrase of the key") { $0.tls.passphrase = $1 },
        OptionRule(.connection, nil, "proxy", "SCHEME:PROXY", "the proxy for URLs of http, https, ftp or all") {
            (options, text) throws(UsageError) in
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { throw UsageError("--proxy takes SCHEME:PROXY, not \(text)") }
            guard ["http", "https", "ftp", "all"].contains(parts[0]) else {
                throw UsageError("--proxy takes http:PROXY, https:PROXY, ftp:PROXY or all:PROXY, not \(parts[0]):")
            }
            _ = try NetworkOptions.proxy(parts[1], "--proxy")
            options.networks.schemeProxies[parts[0] + "_proxy"] = parts[1]
        },
        OptionRule(.memory, nil, "session", "NAME", "keep this server's cookies under NAME; a/path/NAME is a file") {
            $0.items.session = $1
        },
    ]
}

extension ForeignOption {
    static let httpie: [ForeignOption] = [
        ForeignOption("--session-read-only", near: "--session"),
        ForeignOption("--compress -x", "bodies are sent as they are"),
        ForeignOption("--chunked", near: "-T - of the other grammar"),
        ForeignOption("--history-print -P", near: "--print"),
        ForeignOption("--sorted --format-options", near: "--pretty"),
        ForeignOption("--response-charset --response-mime --boundary --default-scheme"),
        ForeignOption("--ssl --ciphers", near: "--tls-min of the other grammar"),
        ForeignOption("--debug --traceback", near: "--verbose"),
    ]
}
