// SPDX-License-Identifier: Apache-2.0

// The options for how a load is carried out, in the groups of `Configuration`.

import URLLoading

/// Time limits of a load; `nil` for the session's defaults.
struct TimeoutOptions: Sendable {
    var idle: Duration?
    var resource: Duration?
    var connect: Duration?
    /// The time limit for a 100 (Continue).
    var expectContinue: Duration?
}

struct ConnectionOptions: Sendable {
    var maximumPerHost: Int?
    /// How many parts of a file are loaded at once; `nil` for the file as a whole.
    var parallelRanges: ParallelRanges?
    var httpVersions = Configuration.HTTPVersions.automatic
    /// True if requests are of HTTP/1.0.
    var speaksHTTP10 = false
    /// Whether requests may be sent as early data over HTTP/3.
    var sendsEarlyData = false

    /// Chooses HTTP/3, if this build supports it.
    mutating func use(_ versions: Configuration.HTTPVersions, _ option: String) throws(UsageError) {
        try Self.requireHTTP3(option)
        (httpVersions, speaksHTTP10) = (versions, false)
    }

    /// Throws unless this build supports HTTP/3.
    static func requireHTTP3(_ option: String) throws(UsageError) {
        guard Configuration.HTTPVersions.hasHTTP3 else {
            throw UsageError("\(option): this urlload was built without HTTP/3 (swift build --traits HTTP3)")
        }
    }
}

struct RedirectOptions: Sendable {
    var areFollowed = true
    var maximum: Int?
    /// Schemes that redirects may lead to, as far as ``RequestOptions/schemes`` contains them.
    var schemes = OptionValue.allSchemes
    /// The redirects after which a POST stays one, with its body: 301, 302, 303.
    var keepsPost: Set<Int> = []
}

struct RetryOptions: Sendable {
    var count = 0
    /// True if the command repeats failed loads itself and continues cut bodies, as wget does (``Attempts``); otherwise
    /// the session retries, until a response has begun.
    var continuesBodies = false
    /// True if requests that are not idempotent are sent again, too.
    var repeatsAnyMethod = false
    /// The statuses after which a load is repeated (wget's `--retry-on-http-error`).
    var statuses: Set<Status> = []
    var includesHosts = false
    var includesRefused = false
    var includesEverything = false
    /// The delay between attempts; `nil` for exponential backoff.
    var delay: Duration?
    var maximumTime: Duration?
}

struct CachingOptions: Sendable {
    /// The folder of stored responses.
    var directory: String?
    var policy = Request.CachePolicy.useProtocol
}

struct LimitOptions: Sendable {
    /// Bytes a second.
    var rate: Int64?
    /// The size in bytes beyond which a body is refused.
    var bodySize: Int64?
}
