extension Configuration {
    /// Which cookies go with requests, and where they are kept.
    ///
    /// ```swift
    /// configuration.cookies.storage = .store(CookieStore())   // shared with whoever else is given it
    /// configuration.cookies.acceptPolicy = .never             // send what is there, take nothing new
    /// ```
    public struct Cookies: Sendable {
        /// Where they are kept: by default in ``CookieStore/shared``, and of an ephemeral session in a store of its own.
        /// ``Session/cookies`` is that store.
        public var storage = Storage.automatic
        /// Which cookies of servers are taken; `nil`, the default, leaves it to the store
        /// (``CookieStore/acceptPolicy``), where it can be changed at any time.
        public var acceptPolicy: CookieStore.AcceptPolicy?
        /// The same, where neither this nor the store has been told any.
        package var fallbackPolicy = CookieStore.AcceptPolicy.always
        /// Whether cookies of the store go with requests.
        public var sendsCookies = true
        /// Bytes of a Cookie field, at least 0. Servers commonly refuse more than 8 KiB of fields; cookies that do not fit are
        /// left out, the more general first.
        public var maximumFieldSize = 8 * 1024

        public init() {}

        /// Where cookies are kept.
        public enum Storage: Sendable {
            /// In ``CookieStore/shared``; of an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this one.
            case store(CookieStore)
            /// Nowhere: none is sent, none is taken.
            case none
        }
    }
}
