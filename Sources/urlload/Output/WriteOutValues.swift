// SPDX-License-Identifier: Apache-2.0

// The variables of `-w`, with curl's names. Values that this command cannot know are 0 or empty, as in curl.

import FoundationEssentials
import URLLoading

enum WriteOutValues {
    typealias Value = (name: String, value: JSONText)

    /// In alphabetical order, as in curl's JSON.
    static func all(_ report: Report, _ job: Job) -> [Value] {
        (response(report, job) + request(report, job) + connection(report) + counts(report) + times(report)).sorted {
            $0.name < $1.name
        }
    }

    private static func response(_ report: Report, _ job: Job) -> [Value] {
        let code = report.isUnchanged ? 304 : Int64(report.head?.status.code ?? 0)
        let shown = String(repeating: "0", count: max(0, 3 - "\(code)".count)) + "\(code)"
        return [
            ("content_type", .optional(report.head?.headers[.contentType])),
            ("errormsg", .optional(report.failure.map { ErrorWords.make($0, in: job.options.shared.grammar) })),
            ("exitcode", .integer(Int64(report.failure?.exit.rawValue ?? 0))),
            ("filename_effective", .optional(report.file)),
            ("http_code", code == 0 ? .text(shown) : .integer(code)),
            ("response_code", code == 0 ? .text(shown) : .integer(code)),
            ("http_version", .text(version(report.head))),
            ("num_headers", .integer(Int64(report.head?.headers.count ?? 0))),
            ("num_redirects", .integer(Int64(report.redirects.count))),
            ("redirect_url", .optional(report.redirectURL)),
        ]
    }

    /// `1.1` or `2`; `0` without a response.
    private static func version(_ head: HTTPHead?) -> String {
        guard let head else { return "0" }
        let text = "\(head.version)".split(separator: "/").last.map(String.init) ?? "0"
        return text.hasSuffix(".0") && text != "1.0" ? String(text.dropLast(2)) : text
    }

    private static func request(_ report: Report, _ job: Job) -> [Value] {
        let last = report.metrics?.transactions.last
        let url = report.effectiveURL ?? report.url
        return [
            (
                "method",
                .text(last.map { "\($0.request.method)" } ?? job.options.request.method.map { "\($0)" } ?? "GET")
            ),
            ("referer", .optional(last?.requestHeaders[.referer])),
            ("scheme", .optional(URL(string: url)?.scheme?.lowercased())),
            ("url", .text(AddressText.inMessage(job.url))),
            ("url_effective", .text(url)),
            ("urlnum", .integer(Int64(job.number))),
        ]
    }

    private static func connection(_ report: Report) -> [Value] {
        let last = report.metrics?.transactions.last { $0.remoteAddress != nil }
        return [
            ("local_ip", .text(last?.localAddress ?? "")), ("local_port", .integer(Int64(last?.localPort ?? 0))),
            ("remote_ip", .text(last?.remoteAddress ?? "")), ("remote_port", .integer(Int64(last?.remotePort ?? 0))),
            ("http_connect", .integer(0)), ("proxy_ssl_verify_result", .integer(0)),
            ("ssl_verify_result", .integer(report.failure?.exit == .certificate ? 1 : 0)),
            ("ftp_entry_path", .null), ("curl_version", .text(Help.version)),
        ]
    }

    private static func counts(_ report: Report) -> [Value] {
        let all = report.metrics?.transactions ?? []
        let last = all.last
        let seconds = max(report.timings.total ?? 0, 0.000_001)
        let sent = last?.requestContentBytes ?? 0
        return [
            ("num_connects", .integer(Int64(all.count { $0.connectEnd != nil && !$0.isReusedConnection }))),
            ("num_retries", .integer(Int64(max(0, all.count - 1 - report.redirects.count)))),
            ("size_download", .integer(report.bytes)), ("size_upload", .integer(sent)),
            ("size_header", .integer(all.reduce(0) { $0 + $1.responseHeadBytes })),
            ("size_request", .integer(all.reduce(0) { $0 + $1.requestHeadBytes + $1.requestBodyBytes })),
            ("speed_download", .integer(Int64(Double(report.bytes) / seconds))),
            ("speed_upload", .integer(Int64(Double(sent) / seconds))),
        ]
    }

    private static func times(_ report: Report) -> [Value] {
        let last = report.metrics?.transactions.last
        func moment(_ moment: LoadMetrics.Moment?) -> JSONText { .seconds(moment.map { $0.offset / .seconds(1) } ?? 0) }
        let redirected = (report.metrics?.redirectCount ?? 0) > 0
        return [
            ("time_namelookup", moment(last?.lookupEnd)),
            ("time_connect", moment(last?.secureStart ?? last?.connectEnd)),
            ("time_appconnect", moment(last?.secureEnd)),
            ("time_pretransfer", moment(last?.requestStart)), ("time_starttransfer", moment(last?.responseStart)),
            ("time_redirect", redirected ? moment(last?.fetchStart) : .seconds(0)),
            ("time_total", .seconds(report.timings.total ?? 0)),
        ]
    }
}
