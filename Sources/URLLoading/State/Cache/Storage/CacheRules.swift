// SPDX-License-Identifier: Apache-2.0

// The freshness rules in the fields of a stored response: RFC 9111 §4.2, RFC 5861, RFC 8246. Pure; all times are
// seconds since 1970 by the local clock, and durations are seconds.

import URLLoadingWire

/// The freshness of a stored response, computed once.
struct CacheRules: Sendable {
    let control: CacheControl
    /// The freshness lifetime, counted from the response's generation (§4.2.1), and the field that states it.
    let lifetime: Double
    let source: Source
    /// Its age when it arrived (§4.2.3, corrected_initial_age).
    let initialAge: Double
    let responseTime: Double
    let hasValidator: Bool
    /// The response has a content coding that the library can decode; its body may be stored decoded.
    let isDecodable: Bool

    enum Source: Sendable, Hashable {
        case maxAge, expires, heuristic, nothing
    }

    /// If the local clock was set back by more than this many seconds, computed ages are meaningless.
    private static let clockTolerance = 60.0
    /// The longest heuristic lifetime, in seconds (§4.2.2).
    static let maximumHeuristicLifetime = 86_400.0

    init(_ status: Status, _ headers: Headers, requestTime: Double, responseTime: Double) {
        self.init(status, headers, CacheControl(headers), requestTime: requestTime, responseTime: responseTime)
    }

    /// - Parameter control: the parsed Cache-Control directives of `headers`.
    init(_ status: Status, _ headers: Headers, _ control: CacheControl, requestTime: Double, responseTime: Double) {
        self.control = control
        self.responseTime = responseTime
        let date = headers.date(.date) ?? responseTime
        let lastModified = headers.date(.lastModified)
        isDecodable = headers[.contentEncoding].map { ContentDecoder.decodes($0) } ?? false
        hasValidator = lastModified != nil || headers.contains(.etag)
        // §4.2.3. A Date in the future does not make the age negative.
        let apparent = max(0, responseTime - date)
        let corrected = Double(headers.age ?? 0) + max(0, responseTime - requestTime)
        initialAge = max(apparent, corrected)
        if let maxAge = control.maxAge {
            (lifetime, source) = (Double(maxAge), .maxAge)
        } else if headers.contains(.expires) {
            // §5.3: an invalid date, "0" above all, counts as past.
            (lifetime, source) = (max(0, (headers.date(.expires) ?? -.infinity) - date), .expires)
        } else if status.isHeuristicallyCacheable || control.flags.contains(.public),
            let heuristicLifetime = Self.heuristicLifetime(status, date, lastModified)
        {
            (lifetime, source) = (heuristicLifetime, .heuristic)
        } else {
            (lifetime, source) = (0, .nothing)
        }
    }

    /// §4.2.2: a tenth of the time since the last modification. Permanent redirects have a heuristic lifetime without
    /// that date.
    private static func heuristicLifetime(_ status: Status, _ date: Double, _ lastModified: Double?) -> Double? {
        if let lastModified { return min(max(0, (date - lastModified) / 10), maximumHeuristicLifetime) }
        return status == .movedPermanently || status == .permanentRedirect ? maximumHeuristicLifetime : nil
    }

    /// §4.2.3, current_age.
    func age(_ now: Double) -> Double {
        let resident = now - responseTime
        return resident < -Self.clockTolerance ? .infinity : initialAge + max(0, resident)
    }

    /// Whether the response can answer a later request under RFC 9111 and RFC 5861: it has a lifetime or a validator,
    /// or may be served stale.
    var isReusable: Bool {
        lifetime > 0 || hasValidator || control.staleWhileRevalidate != nil || control.staleIfError != nil
    }
}

extension StoredResponse {
    /// The freshness rules, computed if they have not been yet.
    var knownRules: CacheRules {
        rules ?? CacheRules(status, headers, requestTime: requestTime, responseTime: responseTime)
    }

    /// The response with its rules, for those that are kept in memory.
    var ruled: StoredResponse {
        var ruled = self
        ruled.rules = knownRules
        return ruled
    }

    // Without a copy of the rules.
    func age(_ now: Double) -> Double { rules?.age(now) ?? knownRules.age(now) }
    var isDecodable: Bool { rules?.isDecodable ?? knownRules.isDecodable }
}

extension Status {
    /// RFC 9110 §15.1.
    var isHeuristicallyCacheable: Bool {
        switch code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }
}

extension Headers {
    /// The first date in a field, in seconds since 1970; `nil` if it is absent or invalid.
    func date(_ name: FieldName) -> Double? {
        // Most fields are absent or in the preferred format; neither case needs a String.
        guard let fixed = withValueBytes(of: name, { FixedDate.seconds($0) }) else { return nil }
        if let fixed { return Double(fixed) }
        guard let text = values(of: name).first else { return nil }
        return HTTPDate(text).map { Double($0.secondsSince1970) }
    }
}
