// Whether, and when, a request is tried again as a policy says. Pure: the time and the chance are passed in.
// What is sent again at once on another connection, because an idle one was stale, is `RetryPlan`'s.

import URLLoadingWire

struct BackoffPlan {
    private let policy: RetryPolicy
    private let mayRepeat: Bool
    private let began: Int64
    /// How many tries there were.
    private(set) var attempts = 1

    /// - Parameter now: nanoseconds of the load's clock, as everywhere here.
    init(_ request: Request, _ policy: RetryPolicy, now: Int64) {
        self.policy = policy
        // RFC 9110 §9.2.2: only what may arrive twice is sent twice without asking.
        mayRepeat = policy.retriesNonIdempotent || request.method.isIdempotent
        began = now
    }

    /// - Parameter roll: the chance, 0..<1.
    mutating func retry(after error: LoadError, now: Int64, roll: Double) -> Retry? {
        guard policy.reasons.contains(error.reason), !Self.isFinal(error.reason) else { return nil }
        return retry(.failed(error), after: backoff(roll), now)
    }

    /// - Parameter date: the same moment as the calendar has it, for servers that name no Date of theirs.
    mutating func retry(after head: HTTPHead, now: Int64, date: HTTPDate, roll: Double) -> Retry? {
        guard policy.statuses.contains(head.status), let asked = wait(asked: head.headers, date) else { return nil }
        return retry(.status(head.status), after: asked.saturatingAdd(backoff(roll)), now)
    }

    private mutating func retry(_ cause: Retry.Cause, after delay: Int64, _ now: Int64) -> Retry? {
        guard mayRepeat, attempts < policy.maximumAttempts else { return nil }
        if let limit = policy.maximumDuration, (now - began).saturatingAdd(delay) > limit.wait { return nil }
        attempts += 1
        return Retry(cause: cause, attempt: attempts, delay: .nanoseconds(delay))
    }

    /// The ends that a caller has set.
    private static func isFinal(_ reason: LoadError.Reason) -> Bool {
        reason == .cancelled || reason == .sessionInvalidated || reason == .resourceTimeout
    }

    /// "Full jitter": between nothing and a bound that doubles.
    private func backoff(_ roll: Double) -> Int64 {
        switch policy.backoff {
        case .constant(let delay): return delay.wait
        case .exponential(let base, let cap):
            let (doubled, overflows) = base.wait.multipliedReportingOverflow(by: 1 << min(attempts - 1, 62))
            return Int64(Double(overflows ? cap.wait : min(cap.wait, doubled)) * roll)
        }
    }

    /// What a server asks to be waited; `nil` if that is too long.
    private func wait(asked headers: Headers, _ date: HTTPDate) -> Int64? {
        guard let text = headers[.retryAfter], let after = RetryAfter(text, now: date) else { return 0 }
        // A moment is one of the server's clock.
        let seconds = after.seconds(after: headers[.date].flatMap { HTTPDate($0, now: date) } ?? date)
        let (wait, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows || wait > policy.maximumRetryAfter.wait ? nil : wait
    }
}

extension Duration {
    /// In nanoseconds; at least 0, at most about 146 years.
    fileprivate var wait: Int64 { self > .zero ? LoadHandle.nanoseconds(self) : 0 }
}

extension Int64 {
    fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}
