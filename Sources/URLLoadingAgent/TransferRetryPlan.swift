import URLLoading
import URLLoadingIO
import URLLoadingWire

/// What follows a failed attempt, or an answer that asks to come back later. Pure: the time is passed in.
///
/// Failures of the network are retried until the resource timeout, however many there are. Other failures, and all
/// statuses but 429 and 503 with Retry-After, are results (checklist 149, 160).
enum TransferRetryPlan: Sendable, Equatable {
    case wait(TransferState.Wait)
    case finish(LoadError.Reason, detail: String)

    struct Facts: Sendable {
        var now: Int64
        /// Of the first attempt.
        var began: Int64
        var resourceTimeout: Int64?
        /// Failures in a row, this one included.
        var failures: Int
        /// 0.5 to 1.
        var share: Double
        /// Nothing of the request's body may have reached a server, or a repetition does no harm.
        var mayRepeat: Bool

        init(
            now: Int64, began: Int64, resourceTimeout: Int64?, failures: Int, share: Double, mayRepeat: Bool
        ) {
            (self.now, self.began, self.resourceTimeout) = (now, began, resourceTimeout)
            (self.failures, self.share, self.mayRepeat) = (failures, share, mayRepeat)
        }
    }

    static let initialDelay: Int64 = 1_000_000_000
    static let longestDelay: Int64 = 600_000_000_000

    /// Failures that another attempt may not meet.
    private static let passing: Set<LoadError.Reason> = RetryPolicy.transientReasons.union([
        .hostNotFound, .cannotConnect, .notAllowedOnCellularNetwork, .notAllowedOnExpensiveNetwork,
        .notAllowedOnConstrainedNetwork, .proxyNotFound, .proxyResolutionFailed, .secureConnectionFailed,
    ])
    /// Failures of this machine's disk.
    private static let ofDisk: Set<LoadError.Reason> = [.cannotWriteFile, .cannotCreateFile]

    static func after(_ error: LoadError, _ facts: Facts) -> TransferRetryPlan {
        if ofDisk.contains(error.reason) {
            return within(facts, .disk, delay: 30_000_000_000, error)
        }
        guard passing.contains(error.reason) else { return .finish(error.reason, detail: error.detail ?? "") }
        guard facts.mayRepeat else {
            return .finish(
                error.reason,
                detail: "the request may have been carried out; it is not repeated without Idempotency-Key")
        }
        return within(facts, .backoff, delay: delay(facts.failures, facts.share), error)
    }

    /// - Parameter seconds: what the server asks for.
    static func after(status: Int, retryAfter seconds: Int64, _ facts: Facts) -> TransferRetryPlan? {
        guard status == 429 || status == 503 else { return nil }
        let delay = max(1, min(seconds, 7 * 24 * 3600)) * 1_000_000_000
        if let timeout = facts.resourceTimeout, facts.now + delay - facts.began > timeout { return nil }
        return .wait(.init(.retryAfter, until: facts.now + delay, detail: "status \(status)"))
    }

    private static func within(
        _ facts: Facts, _ reason: TransferState.Wait.Reason, delay: Int64, _ error: LoadError
    ) -> TransferRetryPlan {
        if let timeout = facts.resourceTimeout, facts.now - facts.began >= timeout {
            return .finish(.resourceTimeout, detail: error.reason.name)
        }
        let end = facts.resourceTimeout.map { facts.began.addingReportingOverflow($0) }
        let until = facts.now + delay
        return .wait(
            .init(
                reason, until: end.map { $0.overflow ? until : min(until, $0.partialValue) } ?? until,
                detail: error.reason.name))
    }

    /// 1 s, doubled for each failure in a row, at most 10 minutes; a random part of that, so that what failed together
    /// does not come back together.
    static func delay(_ failures: Int, _ share: Double) -> Int64 {
        let doublings = min(max(0, failures - 1), 20)
        return Int64(Double(min(initialDelay << Int64(doublings), longestDelay)) * min(1, max(0.5, share)))
    }
}
