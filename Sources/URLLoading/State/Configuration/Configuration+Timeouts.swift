// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// The timeouts of a session's loads. ``Request`` may set its own, except for ``expectContinue``.
    ///
    /// ```swift
    /// configuration.timeouts.connect = .seconds(5)
    /// configuration.timeouts.resource = .seconds(60)
    /// ```
    public struct Timeouts: Sendable, Hashable {
        /// The idle timeout: how long the peer may be silent (while connecting, sending or receiving) before the load
        /// ends with ``LoadError/Reason/idleTimeout``. More than zero; `nil` for no limit; 60 seconds by default. A
        /// request may set its own. URLSession's `timeoutIntervalForRequest`.
        public var idle: Duration? = .seconds(60)
        /// The resource timeout: how long a load may take as a whole, redirects and retries included, before it ends
        /// with ``LoadError/Reason/resourceTimeout``. More than zero; `nil` for no limit; seven days by default. A
        /// request may set its own. URLSession's `timeoutIntervalForResource`.
        public var resource: Duration? = .seconds(7 * 24 * 60 * 60)

        /// The connect timeout: how long one connection attempt may take, from the name look-up to the end of the TLS
        /// handshake, before it ends with ``LoadError/Reason/connectTimeout``. More than zero; `nil`, the default, for
        /// no limit but ``idle`` and ``resource``. A request may set its own.
        ///
        /// ```swift
        /// configuration.timeouts.connect = .seconds(5)
        /// ```
        /// It covers the look-up, all addresses of the host together, the tunnels through proxies and the TLS
        /// handshakes; for FTP also the login, and once more each data connection. It does not cover the wait for one
        /// of the ``Connections/maximumPerHost``, the wait for another load that connects to the same server, the time
        /// of decisions, or the time for which a task is suspended. It does not apply to connections that are already
        /// open. Each retry of a ``Retries/policy`` and each of several proxies has the full timeout.
        public var connect: Duration?

        /// How long a body waits for 100 (Continue) if its request has `Expect: 100-continue` (RFC 9110 §10.1.1); then
        /// it is sent without it. More than zero; one second by default.
        public var expectContinue: Duration = .seconds(1)

        /// Creates the default settings.
        public init() {}
    }
}
