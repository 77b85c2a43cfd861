// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// Authentication of a session's loads: the sources of credentials without a decision (``Decisions/challenge``),
    /// and the schemes that may be used.
    ///
    /// ```swift
    /// configuration.authentication.credentialStore = CredentialStore()
    /// configuration.authentication.methods = [.digest, .negotiate]   // never a password in the clear
    /// configuration.authentication.netrc = .standard
    /// ```
    /// A request with an Authorization field of its own is authenticated by its caller: no decision is asked, and a 401
    /// is the response.
    public struct Authentication: Sendable {
        /// The store in which credentials are looked up and kept.
        ///
        /// With `nil`, the default, credentials are kept in the session's memory and, unless the session is ephemeral,
        /// in ``CredentialStore/shared``.
        public var credentialStore: CredentialStore?
        /// Authentication schemes that may be used; `nil`, the default, allows all supported ones.
        public var methods: Set<Challenge.Method>?
        /// Authentication schemes that may be used with proxies; `nil`, the default, allows those of ``methods``.
        ///
        /// The user and password of a ``Proxy`` are sent without a challenge as ``Challenge/Method/basic``. If that is
        /// not among these schemes, they are used only when the proxy challenges with an allowed one. SOCKS
        /// authentication is not affected.
        public var proxyMethods: Set<Challenge.Method>?
        /// Whether the user and password of a ``Proxy`` are withheld until the proxy challenges with a 407. `false` by
        /// default: they are sent with the first request, as ``Challenge/Method/basic``.
        ///
        /// ```swift
        /// configuration.authentication.waitsForProxyChallenge = true   // Digest instead of Basic
        /// ```
        /// The strongest scheme that the proxy offers and ``proxyMethods`` allows is used then, at the cost of one more
        /// exchange for each proxy and session. SOCKS is not affected.
        public var waitsForProxyChallenge = false
        /// A netrc file of users and passwords, in the format of `ftp` and `curl`; `nil`, the default, for none.
        public var netrc: Netrc?
        /// Bearer tokens for some origins, and how to refresh them; `nil`, the default, for none.
        public var bearer: BearerTokens?
        /// The timeout of one call of the Kerberos library, which may ask a KDC over the network; more than zero, 10 s
        /// by default.
        ///
        /// After the timeout the load behaves as if there were no ticket, and tries the next scheme that the server
        /// offers. A reachable KDC answers in milliseconds, while the library itself waits for unreachable ones for
        /// minutes.
        public var kerberosTimeout: Duration = .seconds(10)

        /// Creates the default settings.
        public init() {}

        func methods(isProxy: Bool) -> Set<Challenge.Method>? { isProxy ? proxyMethods ?? methods : methods }
    }
}
