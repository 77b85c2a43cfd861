// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// Which cookies are sent and accepted, and where they are stored.
    ///
    /// ```swift
    /// configuration.cookies.storage = .store(CookieStore())   // shared by all sessions that are given it
    /// configuration.cookies.acceptPolicy = .never             // send what is there, take nothing new
    /// ```
    public struct Cookies: Sendable {
        /// The cookie store. By default ``CookieStore/shared``; an ephemeral session has a store of its own.
        /// ``Session/cookies`` is that store.
        public var storage = Storage.automatic
        /// Which cookies of servers are accepted; `nil`, the default, leaves it to the store
        /// (``CookieStore/acceptPolicy``), where it can be changed at any time.
        public var acceptPolicy: CookieStore.AcceptPolicy?
        /// The policy if neither the configuration nor the store sets one.
        package var fallbackPolicy = CookieStore.AcceptPolicy.always
        /// Whether cookies of the store are added to requests; `true` by default.
        public var sendsCookies = true
        /// The size limit of the Cookie field in bytes, at least 0; 8 KiB by default. Servers commonly refuse more than
        /// 8 KiB of fields. Cookies that do not fit are left out, the more general ones first.
        public var maximumFieldSize = 8 * 1024

        /// Creates the default settings.
        public init() {}

        /// The place where cookies are stored.
        public enum Storage: Sendable {
            /// In ``CookieStore/shared``; for an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this store.
            case store(CookieStore)
            /// No store: no cookie is sent or accepted.
            case none
        }
    }
}
