// SPDX-License-Identifier: Apache-2.0

extension Session {
    /// Replaces the TLS settings of new connections: new roots, another client certificate, other pins. Running loads
    /// finish on their connections; later loads use neither those connections nor their TLS sessions.
    ///
    /// ```swift
    /// var tls = session.configuration.tls
    /// tls.clientIdentities = [try .init("api.example.org", renewed)]
    /// session.reloadTLS(tls)
    /// ```
    /// A file of roots (``Configuration/TLS/TrustRoots-swift.enum/file(_:)``) is checked before each handshake, and
    /// read again when it has changed, without this call. ``configuration`` keeps the original settings.
    ///
    /// - Parameter settings: the new settings; `nil` keeps the current ones. Roots are read again in both cases, the
    ///   system's too.
    public nonisolated func reloadTLS(_ settings: Configuration.TLS? = nil) {
        let number = core.pool.connector.secure.renew(settings)
        core.pool.connector.issuers.removeAll()
        core.pool.closeIdle()
        guard let settings, let cache = core.cache else { return }
        var renewed = core.configuration
        renewed.tls = settings
        cache.renew(renewed, number)
    }
}

extension Session {
    /// Closes the idle connections, so that later loads use new ones; connections in use stay open.
    package nonisolated func closeIdleConnections() { core.pool.closeIdle() }
}
