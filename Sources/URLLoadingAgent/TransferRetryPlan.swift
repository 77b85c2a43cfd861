// SPDX-License-Identifier: Apache-2.0

import URLLoading
import URLLoadingIO

/// Decides what follows a failed attempt, or a response that asks for a retry. Pure: the time is passed in.
///
/// Network failures are retried until the resource timeout, without a limit of attempts. Other failures are results,
/// and so are all statuses, except 429 and 503 with Retry-After.
enum TransferRetryPlan: Sendable, Equatable {
    case wait(TransferState.Wait)
    case finish(LoadError.Reason, detail: String)

    struct Facts: Sendable {
        var now: Int64
        /// The time of the first attempt.
        var began: Int64
        var resourceTimeout: Int64?
        /// The number of consecutive failures, including this one.
        var failures: Int
        /// The random factor of the delay, 0.5 to 1.
        var share: Double
        /// No server received any part of the request's body, or the request may be repeated without harm.
        var mayRepeat: Bool

        /// The time until the resource timeout, at least a nanosecond; `nil` without one.
        var timeLeft: Duration? {
            let taken = now.saturatingSubtract(began)
            return resourceTimeout.map { .nanoseconds(max(1, $0.saturatingSubtract(taken))) }
        }
    }

    static let initialDelay: Int64 = 1_000_000_000
    static let longestDelay: Int64 = 600_000_000_000

    /// Failures that may be temporary.
    private static let passing: Set<LoadError.Reason> = RetryPolicy.transientReasons.union([
        .hostNotFound, .cannotConnect, .notAllowedOnCellularNetwork, .notAllowedOnExpensiveNetwork,
        .notAllowedOnConstrainedNetwork, .proxyNotFound, .proxyResolutionFailed, .secureConnectionFailed,
    ])
    /// Failures of the local disk.
    private static let ofDisk: Set<LoadError.Reason> = [.cannotWriteFile, .cannotCreateFile, .cannotMoveFile]

    static func after(_ error: LoadError, _ facts: Facts) -> TransferRetryPlan {
        let isOfDisk = ofDisk.contains(error.reason)
        guard isOfDisk || passing.contains(error.reason) else {
            return .finish(error.reason, detail: error.detail ?? "")
        }
        guard facts.mayRepeat else {
            return .finish(
                error.reason,
                detail: "the request may have been carried out; it is not repeated without Idempotency-Key")
        }
        if isOfDisk { return within(facts, .disk, delay: 30_000_000_000, error) }
        return within(facts, .backoff, delay: delay(facts.failures, facts.share), error)
    }

    /// - Parameter seconds: the delay that the server asks for.
    static func after(status: Int, retryAfter seconds: Int64, _ facts: Facts) -> TransferRetryPlan? {
        guard status == 429 || status == 503 else { return nil }
        let delay = max(1, min(seconds, 7 * 24 * 3600)) * 1_000_000_000
        if let timeout = facts.resourceTimeout, facts.now + delay - facts.began > timeout { return nil }
        return .wait(.init(.retryAfter, until: facts.now + delay, detail: "status \(status)"))
    }

    /// The pause of a host whose server asks for a delay, for all agents that share a journal. A server may mean one
    /// resource only, so its other transfers wait an hour at most.
    static func pause(of host: String, retryAfter seconds: Int64) -> JournalChange {
        .pause(host: host, nanoseconds: max(1, min(seconds, 3600)) * 1_000_000_000)
    }

    private static func within(
        _ facts: Facts, _ reason: TransferState.Wait.Reason, delay: Int64, _ error: LoadError
    ) -> TransferRetryPlan {
        if let timeout = facts.resourceTimeout, facts.now.saturatingSubtract(facts.began) >= timeout {
            return .finish(.resourceTimeout, detail: error.reason.name)
        }
        let end = facts.resourceTimeout.map { facts.began.saturatingAdd($0) } ?? .max
        return .wait(
            .init(reason, until: min(facts.now.saturatingAdd(delay), end), detail: error.reason.name))
    }

    /// Returns the delay: 1 s, doubled for each consecutive failure up to 10 minutes, times a random factor, so that
    /// transfers that failed together do not retry together.
    static func delay(_ failures: Int, _ share: Double) -> Int64 {
        let doublings = min(max(0, failures - 1), 20)
        return Int64(Double(min(initialDelay << Int64(doublings), longestDelay)) * min(1, max(0.5, share)))
    }
}
