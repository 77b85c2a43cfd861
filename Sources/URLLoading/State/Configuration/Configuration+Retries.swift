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

        /// Creates the default settings.
        public init() {}
    }
}
