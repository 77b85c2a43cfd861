// What is known of a load when it is over: what `--summary json` and `-w` write.

import FoundationEssentials
import URLLoading

struct Report: Sendable {
    struct Timings: Sendable {
        var resolve: Double?
        var connect: Double?
        var tls: Double?
        var firstByte: Double?
        var total: Double?
        var isReused = false
    }

    struct Failure: Sendable {
        var reason: String
        var code: Int
        var phase: String?
        var party: String
        var detail: String?
        /// At which proxy; `nil` if it was none.
        var proxy: String?
        var exit: ExitCode
    }

    var url: String
    var effectiveURL: String?
    var head: HTTPHead?
    var bytes: Int64 = 0
    var file: String?
    var timings = Timings()
    var redirects: [(status: Int, url: String)] = []
    /// Where a redirect led that was not followed.
    var redirectURL: String?
    var failure: Failure?
    /// Where a download went on.
    var resumedAt: Int64 = 0
    /// What a load that ended early has left.
    var kept: Kept?
    var metrics: LoadMetrics?
    /// What the cache decided about each request, by the number of redirects before it.
    var cacheDecisions: [Int: String] = [:]
    /// The beginning of the body, if there is a report to show it.
    var preview: BodyPreview?

    /// The beginning of a file.
    struct Kept: Sendable, Hashable {
        var file: String
        var bytes: Int64
        /// How many there are in all, if that is known.
        var total: Int64?
        /// Whether the server can say that the rest belongs to it.
        var isChecked: Bool
        /// Whether a later run can go on with it.
        var canGoOn = true
    }

    /// One object on one line.
    var json: JSONText {
        .object([
            ("url", .text(url)),
            ("effectiveURL", .optional(effectiveURL)),
            ("status", head.map { .integer(Int64($0.status.code)) } ?? .null),
            ("version", .optional(head?.version.description)),
            ("headers", head.map { Self.fields($0.headers) } ?? .null),
            ("bytes", .integer(bytes)),
            ("file", .optional(file)),
            (
                "timings",
                .object([
                    ("resolve", .optional(timings.resolve)), ("connect", .optional(timings.connect)),
                    ("tls", .optional(timings.tls)), ("firstByte", .optional(timings.firstByte)),
                    ("total", .optional(timings.total)),
                ])
            ),
            ("reused", .bool(timings.isReused)),
            (
                "redirects",
                .list(redirects.map { .object([("status", .integer(Int64($0.status))), ("url", .text($0.url))]) })
            ),
            ("error", failure?.json ?? .null),
        ])
    }

    /// Names in lower case, all values of each: `.headers["set-cookie"][0]`.
    static func fields(_ headers: Headers) -> JSONText {
        var names: [String] = []
        var values: [String: [JSONText]] = [:]
        for field in headers {
            let name = field.name.description.lowercased()
            if values[name] == nil { names.append(name) }
            values[name, default: []].append(.text(field.value))
        }
        return .object(names.map { ($0, .list(values[$0] ?? [])) })
    }
}

extension Report.Failure {
    init(_ error: LoadError) {
        self.init(
            reason: error.reason.name, code: error.code, phase: error.phase.rawValue, party: error.party.rawValue,
            detail: error.detail, proxy: error.proxyFailure?.proxy.description, exit: ExitCode(error))
    }

    /// A rule of the command line forbade the load.
    static let ownReason = "notAllowed"

    init(_ error: OutputError) {
        self.init(
            reason: error.code == .read
                ? "inputFailed" : error.code == .unsupportedScheme ? Self.ownReason : "outputFailed",
            code: -3000, phase: nil, party: "local",
            detail: error.words, exit: error.code)
    }

    init(_ status: Status) {
        self.init(
            reason: "httpError", code: -1011, phase: "receiving", party: "remote", detail: status.description,
            exit: .httpError)
    }

    var json: JSONText {
        .object([
            ("reason", .text(reason)), ("code", .integer(Int64(code))), ("phase", .optional(phase)),
            ("party", .text(party)), ("detail", .optional(detail)), ("proxy", .optional(proxy)),
            ("exitCode", .integer(Int64(exit.rawValue))),
        ])
    }
}
