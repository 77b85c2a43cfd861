// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// The redirects of a session's loads. A decision (``Decisions/redirect``) chooses which of them are followed.
    ///
    /// ```swift
    /// configuration.redirects.maximum = 5
    /// ```
    public struct Redirects: Sendable, Hashable {
        /// The maximum number of redirects per load; 20 by default. 0 refuses the first with
        /// ``LoadError/Reason/tooManyRedirects``.
        public var maximum = 20

        /// Creates the default settings.
        public init() {}
    }
}
