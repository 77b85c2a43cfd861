// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// The retries of a session's loads.
    ///
    /// ```swift
    /// configuration.retries.policy = RetryPolicy(maximumAttempts: 4)
    /// ```
    public struct Retries: Sendable, Hashable {
        /// The retry policy. `nil`, the default, retries no failures. Independently of the policy, a request that was
        /// lost on an idle connection before it was answered is sent again, at once and once (RFC 9112 §9.3.1). A
        /// request may set its own.
        public var policy: RetryPolicy?
        /// The number of retries that all loads of the session may make together, under the session's policy and those
        /// of requests. On by default, with a fifth of the requests; `nil` for no limit. Transfers of a background
        /// session are retried by their agent, which has no budget: it makes few requests at once, and waits longer
        /// after each failure.
        public var budget: RetryBudget? = RetryBudget()

        /// Creates the default settings.
        public init() {}
    }
}
