// SPDX-License-Identifier: Apache-2.0

// `--retry` and its companions with curl's meaning, as a `RetryPolicy`. Any method is retried: the user chose the
// method together with `--retry`.

import FoundationEssentials
import URLLoading

extension RetryPolicy {
    /// Returns `nil` without `--retry`.
    init?(_ options: Options) {
        guard options.retries.count > 0 else { return nil }
        self.init(maximumAttempts: options.retries.count < .max ? options.retries.count + 1 : .max)
        reasons = [.idleTimeout, .connectTimeout, .lookupFailed, .hostNotFound]
        if options.retries.includesRefused { reasons.insert(.connectionRefused) }
        statuses = Self.transientStatuses
        if options.retries.includesEverything {
            retriesEveryFailure = true
            statuses = Set((400..<600).compactMap { Status($0) })
        }
        retriesNonIdempotent = true
        maximumDuration = options.retries.maximumTime
        maximumRetryAfter = Self.longest
        backoff = options.retries.delay.map { .constant($0) } ?? .exponential(base: .seconds(1), cap: Self.longest)
    }

    private static let longest = Duration.seconds(600)
}

/// Writes a message to standard error for each retry.
struct RetryNotes: LoadObserver {
    let screen: Screen

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        guard case .retrying(let retry) = event else { return }
        screen.message("\(AddressText.inMessage(load.request.url.absoluteString)): \(retry)")
    }
}
