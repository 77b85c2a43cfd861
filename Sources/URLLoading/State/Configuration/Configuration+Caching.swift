// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// The cache of a session's responses.
    ///
    /// ```swift
    /// configuration.caching.store = nil               // nothing is cached
    /// configuration.caching.policy = .cacheElseLoad   // or: stored responses answer, however old
    /// ```
    public struct Caching: Sendable {
        /// The cache of responses; `nil` for none. Any number of sessions may share one.
        ///
        /// ``Configuration/default`` has the cache of this user and program (``ResponseCache/shared``). In a
        /// configuration made of ``Configuration/ephemeral`` this is `nil`, and each session made of it has a cache of
        /// its own in memory, which ends when the session is invalidated: see ``usesMemoryStore``.
        public var store: ResponseCache? = .shared
        /// Whether an ephemeral session without a ``store`` has one of its own in memory; true by default.
        public var usesMemoryStore = true
        /// The cache policy of requests that have none of their own.
        public var policy = Request.CachePolicy.useProtocol
        /// Whether a response is stored that has neither a lifetime (`max-age`, `Expires`, `Last-Modified`) nor a
        /// validator (`ETag`, `Last-Modified`); false by default, because only a load that accepts any age can use it,
        /// and such a load stores it itself. Set it where a program loads as usual while there is a network, and with
        /// ``Request/CachePolicy/cacheElseLoad`` or ``Request/CachePolicy/onlyIfCached`` while there is none.
        public var storesForAnyAge = false
        /// Whether simultaneous loads of the same URL share one fetch: later ones wait until the first has stored its
        /// response; false by default. Only a body that the library reads to its end is shared
        /// (``Session/data(for:decisions:)``, downloads), and only if a stored response may answer. If the response
        /// turns out not to be storable, each load fetches it.
        public var coalescesIdenticalRequests = false
        /// A cache outside the library, in Redis or a database for example; `nil`, the default, for none. It takes the
        /// place of ``store``: the session then stores nothing of its own. The transfers of a background session are
        /// not cached, and ignore it as they ignore ``store``.
        public var external: ExternalCache?

        /// Creates the default settings.
        public init() {}
    }
}
