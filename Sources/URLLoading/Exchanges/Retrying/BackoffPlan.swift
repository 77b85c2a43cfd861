// SPDX-License-Identifier: Apache-2.0

// Decides whether and when a request is retried under a retry policy. Pure: the time and the random number are
// parameters. Immediate repetitions after a stale idle connection are decided by `RetryPlan`.

import URLLoadingIO
import URLLoadingWire

struct BackoffPlan {
    private let policy: RetryPolicy
    private let mayRepeat: Bool
    private let began: Int64
    /// The number of attempts so far.
    private(set) var attempts = 1

    /// - Parameter now: the time of the load's clock in nanoseconds, here as in every method.
    init(_ request: Request, _ policy: RetryPolicy, now: Int64) {
        self.policy = policy
        // RFC 9110 §9.2.2: by default, only idempotent requests are sent twice.
        mayRepeat = policy.retriesNonIdempotent || request.method.isIdempotent
        began = now
    }

    /// - Parameter roll: a random number, 0..<1, for the jitter.
    mutating func retry(after error: LoadError, now: Int64, roll: Double) -> Retry? {
        guard policy.reasons.contains(error.reason) || policy.retriesEveryFailure && error.party != .local,
            !Self.isFinal(error.reason)
        else { return nil }
        return retry(.failed(error), after: backoff(roll), now)
    }

    /// - Parameter date: the calendar time at `now`, for responses without a Date field.
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

    /// True for failures that the caller caused, such as a cancellation.
    private static func isFinal(_ reason: LoadError.Reason) -> Bool {
        reason == .cancelled || reason == .sessionInvalidated || reason == .resourceTimeout
    }

    /// Returns the delay with "full jitter": random between zero and a bound that doubles.
    private func backoff(_ roll: Double) -> Int64 {
        switch policy.backoff {
        case .constant(let delay): return delay.wait
        case .exponential(let base, let cap):
            let (doubled, overflows) = base.wait.multipliedReportingOverflow(by: 1 << min(attempts - 1, 62))
            return Int64(Double(overflows ? cap.wait : min(cap.wait, doubled)) * roll)
        }
    }

    /// Returns the delay that a server asks for by Retry-After; `nil` if it is longer than the policy allows.
    private func wait(asked headers: Headers, _ date: HTTPDate) -> Int64? {
        guard let text = headers[.retryAfter], let after = RetryAfter(text, now: date) else { return 0 }
        // An HTTP-date is relative to the server's own clock.
        let seconds = after.seconds(after: headers[.date].flatMap { HTTPDate($0, now: date) } ?? date)
        let (wait, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows || wait > policy.maximumRetryAfter.wait ? nil : wait
    }
}

extension Duration {
    /// The duration in nanoseconds; at least 0, at most about 146 years.
    fileprivate var wait: Int64 { self > .zero ? LoadHandle.nanoseconds(self) : 0 }
}
