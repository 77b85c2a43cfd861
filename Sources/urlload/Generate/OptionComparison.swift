// SPDX-License-Identifier: Apache-2.0

// The table of options of curl, wget and httpie in docs/guides/command-line.md.

enum OptionComparison {
    static var text: String {
        var text = "| curl | wget | httpie | urlload |\n|---|---|---|---|\n"
        for rule in OptionTable.curl.rules {
            guard isCurls(rule) || rule.wget != nil || rule.httpie != nil else { continue }
            let own = cell(String(rule.signature.drop { $0 == " " }))
            text += "| \(isCurls(rule) ? curl(rule) : "") | \(cell(rule.wget)) | \(cell(rule.httpie)) | \(own) |\n"
        }
        text += "\nOptions of curl that are not here, and what is nearest:\n\n"
        text += "| curl | nearest | why |\n|---|---|---|\n"
        for other in ForeignOption.curl {
            text +=
                "| \(other.names.map { "`\($0)`" }.joined(separator: " ")) | \(other.nearest ?? "") | \(other.note) |\n"
        }
        return text
    }

    /// True if curl 8 has the option under one of its names.
    private static func isCurls(_ rule: OptionRule) -> Bool { rule.names.contains { !own.contains($0) } }

    private static func curl(_ rule: OptionRule) -> String {
        let name = rule.names.first { !own.contains($0) } ?? rule.long
        return "`\(rule.short.map { "-\($0), " } ?? "")--\(name)`"
    }

    private static func cell(_ text: String?) -> String {
        text.map { $0.hasPrefix("(") ? $0 : "`\($0.replacing("|", with: "\\|"))`" } ?? ""
    }

    /// Names that curl does not have.
    static let own: Set<String> = [
        "no-location", "max-redirects", "max-redirect", "tls-min", "insecure-renegotiation", "missing-close-notify",
        "fetch-issuers", "no-check-certificate", "ca-certificate", "pin",
        "trace-secrets",
        "har", "qlog", "waterfall", "report", "generate", "follow", "continue", "show-headers", "summary", "pretty",
        "sse",
        "quiet", "content-disposition",
        "directory-prefix", "input-file", "method", "spider", "no-compressed", "resumable", "timeout", "read-timeout",
        "max-connections", "cache", "policy", "inet4-only", "inet6-only", "bearer", "cookies", "load-cookies",
        "save-cookies",
        "certificate", "private-key", "progress-meter", "buffer", "clobber",
    ]
}
