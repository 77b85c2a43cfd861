// SPDX-License-Identifier: Apache-2.0

// The options of one grammar, in the order of the help. An option with the meaning of a curl option has curl's name.

import URLLoading

struct OptionTable: Sendable {
    /// The tool whose grammar this is.
    let tool: String
    var grammar = Grammar.curl
    let rules: [OptionRule]
    /// Options of the tool that this command does not have.
    let others: [ForeignOption]
    /// Applied after parsing: defaults of this grammar.
    var conclude: @Sendable (inout Options) throws(UsageError) -> Void = { (_) throws(UsageError) in }

    /// The grammar of curl, which is that of `urlload` itself.
    static let curl = OptionTable(
        tool: "curl",
        rules: output + saving + request + content + redirects + connection + login + memory + security + trust + cache
            + limits + pace + retries + logging + other, others: ForeignOption.curl)

    /// Finds an option by a long name or an unambiguous prefix of one.
    func rule(long name: String) throws(UsageError) -> OptionRule? {
        if let rule = rules.first(where: { $0.names.contains(name) }) { return rule }
        guard name.count > 2, !others.contains(where: { $0.names.contains("--\(name)") }) else { return nil }
        let beginning = rules.filter { $0.names.contains { $0.hasPrefix(name) } }
        guard beginning.count > 1 else { return beginning.first }
        throw UsageError(
            "--\(name) is the beginning of \(beginning.map { "--\($0.long)" }.joined(separator: ", "))")
    }

    /// Finds the option of `no-NAME`, if it has that form.
    func undone(_ name: String) throws(UsageError) -> OptionRule? {
        guard name.hasPrefix("no-"), let rule = try rule(long: String(name.dropFirst(3))) else { return nil }
        return rule.undo == nil ? nil : rule
    }

    /// Returns the error text for an option that is not in the table, with the nearest one.
    func unknown(_ option: String) -> String {
        if let other = others.first(where: { $0.names.contains(option) }) { return other.words(option, of: tool) }
        let isLong = option.hasPrefix("--")
        guard isLong, let near = nearest(to: String(option.dropFirst(2))) else { return "there is no option \(option)" }
        return "there is no option \(option); did you mean \(near)?"
    }

    /// Returns the options whose names are nearly this one; without one, up to three that contain it as a word.
    private func nearest(to name: String) -> String? {
        let undone = rules.filter { $0.undo != nil }.map { "no-\($0.long)" }
        let names = rules.flatMap(\.names) + (name.hasPrefix("no-") ? undone : [])
        if let near = EditDistance.nearest(to: name, among: names) { return "--\(near)" }
        let containing = rules.map(\.long).filter { $0.split(separator: "-").contains { $0.hasPrefix(name) } }
        guard name.count > 2, !containing.isEmpty, containing.count <= 3 else { return nil }
        return containing.map { "--\($0)" }.joined(separator: " or ")
    }
}

extension OptionTable {
    static let redirects: [OptionRule] = [
        OptionRule(.redirects, "L", switch: "location", "follow redirects (default)", \.redirects.areFollowed)
            .also("follow").like(httpie: "-F, --follow"),
        OptionRule(.redirects, nil, flag: "no-location", "do not follow redirects; the redirect is the response") {
            $0.redirects.areFollowed = false
        }.like(wget: "--max-redirect=0"),
        OptionRule(.redirects, nil, "max-redirects", "N", "follow at most N, default 20; more is exit code 47") {
            (options, text) throws(UsageError) in
            options.redirects.maximum =
                text == "-1" ? 10_000 : try OptionValue.count(text, "--max-redirects", from: 0)
        }.also("max-redirs", "max-redirect").like(wget: "--max-redirect=N", httpie: "--max-redirects N"),
        OptionRule(.redirects, nil, flag: "post301", "repeat a POST after a 301; otherwise a GET follows") {
            $0.redirects.keepsPost.insert(301)
        },
        OptionRule(.redirects, nil, flag: "post302", "the same for 302") { $0.redirects.keepsPost.insert(302) },
        OptionRule(.redirects, nil, flag: "post303", "the same for 303") { $0.redirects.keepsPost.insert(303) },
    ]

    static let security: [OptionRule] = [
        OptionRule(.security, nil, "proto", "LIST", "load with these schemes alone: =https; all, +, - as in curl") {
            (options, text) throws(UsageError) in
            options.request.schemes = try OptionValue.schemes(text, from: options.request.schemes)
        },
        OptionRule(.security, nil, "proto-redir", "LIST", "follow redirects to these schemes alone") {
            (options, text) throws(UsageError) in
            options.redirects.schemes = try OptionValue.schemes(text, from: options.redirects.schemes)
        },
        OptionRule(.security, nil, "cacert", "FILE", "trust the issuers in this PEM file, and no others") {
            $0.tls.rootsFile = $1
        }.also("ca-certificate").like(wget: "--ca-certificate=FILE", httpie: "--verify FILE"),
        OptionRule(
            .security, nil, "tls-min", "VERSION", "the lowest TLS version accepted: 1.0, 1.1, 1.2 (default) or 1.3"
        ) {
            (options, text) throws(UsageError) in
            options.tls.minimumVersion = try OptionValue.tlsVersion(text, "--tls-min")
        }.like(wget: "--secure-protocol=…", httpie: "--ssl=…"),
        OptionRule(.security, nil, flag: "tlsv1.0", "the same as --tls-min 1.0, which is not safe") {
            $0.tls.minimumVersion = .tls10
        },
        OptionRule(.security, nil, flag: "tlsv1.1", "the same as --tls-min 1.1, which is not safe") {
            $0.tls.minimumVersion = .tls11
        },
        OptionRule(.security, "1", flag: "tlsv1.2", "the same as --tls-min 1.2") { $0.tls.minimumVersion = .tls12 }
            .also("tlsv1"),
        OptionRule(.security, nil, flag: "tlsv1.3", "the same as --tls-min 1.3") { $0.tls.minimumVersion = .tls13 },
        OptionRule(
            .security, nil, "tls-max", "VERSION", "the highest TLS version offered: 1.0, 1.1, 1.2 or 1.3 (default)"
        ) {
            (options, text) throws(UsageError) in
            options.tls.maximumVersion = try OptionValue.tlsVersion(text, "--tls-max")
        },
        OptionRule(
            .security, nil, flag: "ssl-reqd", "ftp: begin TLS before the login, or end the load (AUTH TLS)"
        ) { $0.ftp.security = .explicit },
        OptionRule(
            .security, "k", switch: "insecure",
            "do not verify certificates: any machine between can read and change everything", \.tls.isInsecure
        ).also("no-check-certificate").like(wget: "--no-check-certificate", httpie: "--verify no"),
    ]

    static let retries: [OptionRule] = [
        OptionRule(
            .retries, nil, "retry", "N",
            "retry up to N times after a timeout, a failed lookup, 408, 429, 500, 502, 503, 504"
        ) { (options, text) throws(UsageError) in
            options.retries.count = try OptionValue.count(text, "--retry", from: 0)
        }.like(wget: "-t N, --tries=N"),
        OptionRule(
            .retries, nil, switch: "retry-connrefused", "with --retry: after a refused connection too",
            \.retries.includesRefused
        ).like(wget: "--retry-connrefused"),
        OptionRule(
            .retries, nil, switch: "retry-all-errors", "with --retry: after every failure and every 4xx and 5xx",
            \.retries.includesEverything
        ).like(wget: "--retry-on-http-error=…"),
        OptionRule(
            .retries, nil, "retry-delay", "SECONDS",
            "wait that long before each retry; 0 or unset: 1, 2, 4 … 600 at most"
        ) { (options, text) throws(UsageError) in
            options.retries.delay = try OptionValue.secondsOrNone(text, "--retry-delay")
        }.like(wget: "--waitretry=SECONDS"),
        OptionRule(.retries, nil, "retry-max-time", "SECONDS", "begin no retry after this time; 0 for no limit") {
            (options, text) throws(UsageError) in
            options.retries.maximumTime = try OptionValue.secondsOrNone(text, "--retry-max-time")
        },
    ]

    static let logging: [OptionRule] = [
        OptionRule(.logging, "v", flag: "verbose", "connections, request and response heads, on standard error") {
            if $0.trace == .off { $0.trace = .heads }
        }.undone { $0.trace = .off }.like(wget: "-d, --debug", httpie: "-v, --verbose"),
        OptionRule(.logging, nil, flag: "trace", "every byte sent and received, on standard error") {
            $0.trace = .everything
        },
        OptionRule(.logging, nil, "trace-ascii", "FILE", "like --trace, in FILE; - is standard output") {
            ($0.trace, $0.shared.traceFile) = (.everything, $1)
        },
        OptionRule(
            .logging, nil, switch: "trace-secrets", "show passwords, tokens and cookies in traces and in --har",
            \.output.showsSecrets),
        OptionRule(.logging, nil, "har", "FILE", "write every transaction, its times and bytes, to FILE (HAR 1.2)") {
            $0.output.archiveFile = $1
        },
        OptionRule(.logging, nil, "qlog", "FILE", "write the packets of HTTP/3 connections to FILE (qlog, JSON-SEQ)") {
            (options, path) throws(UsageError) in
            try ConnectionOptions.requireHTTP3("--qlog")
            options.output.packetLogFile = path
        },
        OptionRule(
            .logging, nil, switch: "waterfall", "draw the times of each request, on standard error",
            \.output.drawsWaterfall),
        OptionRule(.logging, nil, "report", "FILE", "write the waterfall, with the heads, as an HTML page") {
            $0.output.reportFile = $1
        },
    ]

    static let other: [OptionRule] = [
        OptionRule(
            .other, ":", flag: "next", "begin a new group with its own URLs and options"
        ) { $0.startsNext = true },
        OptionRule(
            .other, "K", "config", "FILE", "read options from FILE, one a line; - is standard input"
        ) { $0.configFile = $1 }.like(wget: "--config=FILE"),
        OptionRule(
            .other, "q", granted: "disable", "as the first option: do not read ~/.config/urlload/config"
        ).like(wget: "--no-config"),
        OptionRule(.other, nil, "generate", "KIND", "write completions (bash, zsh, fish), man page (man) or guide") {
            $0.generated = $1
        },
        OptionRule(
            .other, "h", "help", "CATEGORY|OPTION", "the options needed first, those of a category, one, or all"
        ) { ($0.wantsHelp, $0.helpTopic) = (true, $1) }.optional { word in
            word.hasPrefix("-") ? word.count > 1 : !word.isEmpty && word.utf8.allSatisfy { (0x61...0x7A).contains($0) }
        }.like(wget: "-h, --help", httpie: "--help"),
        OptionRule(.other, "V", flag: "version", "the version") { $0.wantsVersion = true }.like(
            wget: "-V, --version", httpie: "--version"),
    ]
}
