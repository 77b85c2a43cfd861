// What the fields of a stored response say about how long it may be used: RFC 9111 §4.2, RFC 5861, RFC 8246. Pure;
// all times are seconds since 1970 by this machine's clock, and durations seconds.

import URLLoadingWire

/// A stored response's freshness, worked out once.
struct CacheRules: Sendable {
    let control: CacheControl
    /// For how long after its making it is fresh (§4.2.1), and who says so.
    let lifetime: Double
    let source: Source
    /// Its age when it arrived (§4.2.3, corrected_initial_age).
    let initialAge: Double
    let responseTime: Double
    let hasValidator: Bool
    /// It has a content coding that can be undone, and perhaps was.
    let isDecodable: Bool

    enum Source: Sendable, Hashable {
        case maxAge, expires, heuristic, nothing
    }

    /// A clock that was set back by more than this makes what it says of ages worthless.
    private static let clockTolerance = 60.0
    /// The most that is guessed (§4.2.2).
    static let longestGuess = 86_400.0

    init(_ status: Status, _ headers: Headers, requestTime: Double, responseTime: Double) {
        self.init(status, headers, CacheControl(headers), requestTime: requestTime, responseTime: responseTime)
    }

    /// - Parameter control: what the fields say, read already.
    init(_ status: Status, _ headers: Headers, _ control: CacheControl, requestTime: Double, responseTime: Double) {
        self.control = control
        self.responseTime = responseTime
        let date = headers.date(.date) ?? responseTime
        let lastModified = headers.date(.lastModified)
        isDecodable = headers[.contentEncoding].map { ContentDecoder.decodes($0) } ?? false
        hasValidator = lastModified != nil || headers.contains(.etag)
        // §4.2.3. A Date in our future makes no negative age.
        let apparent = max(0, responseTime - date)
        let corrected = Double(headers.age ?? 0) + max(0, responseTime - requestTime)
        initialAge = max(apparent, corrected)
        if let maxAge = control.maxAge {
            (lifetime, source) = (Double(maxAge), .maxAge)
        } else if headers.contains(.expires) {
            // §5.3: what is no date, "0" above all, has passed.
            (lifetime, source) = (max(0, (headers.date(.expires) ?? -.infinity) - date), .expires)
        } else if status.isHeuristicallyCacheable || control.flags.contains(.public),
            let guess = Self.guess(status, date, lastModified)
        {
            (lifetime, source) = (guess, .heuristic)
        } else {
            (lifetime, source) = (0, .nothing)
        }
    }

    /// §4.2.2: a tenth of the time it has stayed the same. What has moved for good says so by its status alone.
    private static func guess(_ status: Status, _ date: Double, _ lastModified: Double?) -> Double? {
        if let lastModified { return min(max(0, (date - lastModified) / 10), longestGuess) }
        return status == .movedPermanently || status == .permanentRedirect ? longestGuess : nil
    }

    /// §4.2.3, current_age.
    func age(_ now: Double) -> Double {
        let resident = now - responseTime
        return resident < -Self.clockTolerance ? .infinity : initialAge + max(0, resident)
    }

    /// Whether it could be of use at all for who follows the protocol.
    var isOfUse: Bool { lifetime > 0 || hasValidator }
}

extension StoredResponse {
    /// What is said of it, parsed if nobody has yet.
    var knownRules: CacheRules {
        rules ?? CacheRules(status, headers, requestTime: requestTime, responseTime: responseTime)
    }
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
    /// The first date in a field, in seconds since 1970; `nil` if that is none.
    func date(_ name: FieldName) -> Double? {
        // Mostly there is none, or one in the preferred format: neither needs a String.
        guard let fixed = withValueBytes(of: name, { FixedDate.seconds($0) }) else { return nil }
        if let fixed { return Double(fixed) }
        guard let text = values(of: name).first else { return nil }
        return HTTPDate(text).map { Double($0.secondsSince1970) }
    }
}
