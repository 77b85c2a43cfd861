// SPDX-License-Identifier: Apache-2.0

/// The number of retries that the loads of a session may make together, so that many clients of a server that fails do
/// not multiply its load: ``Configuration/Retries/budget``.
///
/// ```swift
/// configuration.retries.policy = RetryPolicy()
/// configuration.retries.budget = RetryBudget(share: 0.1, minimumPerSecond: 2)
/// ```
/// In any ten seconds the retries are at most this share of the requests that loads with a policy began, and the
/// minimum besides. A retry counts from the moment it is planned; if its load is cancelled in the delay, it is given
/// back. A retry beyond the budget is not made: the load ends with the outcome of its last attempt, as after the last
/// attempt of its policy, and ``LoadEvent/retryRefused(_:)`` says so.
public struct RetryBudget: Sendable, Hashable {
    /// The retries for each request that began: from 0; 0.2 by default. Values that are no such number count as 0.
    public var share: Double
    /// The retries a second that are possible besides, so that a session with few loads retries too: from 0; 10 by
    /// default. Values that are no such number count as 0.
    public var minimumPerSecond: Double

    /// Creates a budget.
    /// - Parameters:
    ///   - share: the retries for each request that began, from 0.
    ///   - minimumPerSecond: the retries a second that are possible besides, from 0.
    public init(share: Double = 0.2, minimumPerSecond: Double = 10) {
        (self.share, self.minimumPerSecond) = (share, minimumPerSecond)
    }
}
