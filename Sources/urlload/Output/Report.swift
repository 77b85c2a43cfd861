// SPDX-License-Identifier: Apache-2.0

// In this folder: what is written about a load

// The result of a load, as written by `--summary json` and `-w`.

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
        /// The proxy that failed; `nil` if the failure is not a proxy's.
        var proxy: String?
        /// The detail without the name of the proxy.
        var proxyDetail: String?
        /// The option with which the load could succeed, as a clause.
        var remedy: String?
        var exit: ExitCode
        /// The status, if it is the failure.
        var status: Status?
    }

    var url: String
    var effectiveURL: String?
    var head: HTTPHead?
    var bytes: Int64 = 0
    var file: String?
    var timings = Timings()
    var redirects: [(status: Int, url: String)] = []
    /// The target of a redirect that was not followed.
    var redirectURL: String?
    var failure: Failure?
    /// The offset at which a download was resumed.
    var resumedAt: Int64 = 0
    /// The partial file of a load that ended early.
    var kept: Kept?
    var metrics: LoadMetrics?
    /// The cache's decision about each request, by the number of redirects before it.
    var cacheDecisions: [Int: String] = [:]
    /// True for a response that a condition (`-z`) has dropped, as if it were a 304.
    var isUnchanged = false
    /// The beginning of the body, if there is a report to show it.
    var preview: BodyPreview?

    /// A partial file.
    struct Kept: Sendable, Hashable {
        var file: String
        var bytes: Int64
        /// The total length in bytes, if known.
        var total: Int64?
        /// True if the server can validate that the rest belongs to the part.
        var isChecked: Bool
        /// True if a later run can resume it.
        var isResumable = true
    }

    /// The report as one JSON object on one line.
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

    /// The fields by lower-case name, each with all values: `.headers["set-cookie"][0]`.
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
            detail: error.detail, proxy: error.proxyFailure?.proxy.description,
            proxyDetail: error.proxyFailure?.detail, remedy: ErrorWords.remedy(error),
            exit: ExitCode(error))
    }

    /// The reason of a load that an option forbids.
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
            exit: .httpError, status: status)
    }

    var json: JSONText {
        .object([
            ("reason", .text(reason)), ("code", .integer(Int64(code))), ("phase", .optional(phase)),
            ("party", .text(party)), ("detail", .optional(detail)), ("proxy", .optional(proxy)),
            ("exitCode", .integer(Int64(exit.rawValue))),
        ])
    }
}
