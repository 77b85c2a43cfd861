extension Session {
    /// From now on connections are made by other TLS settings: new roots, another identity, other pins. Loads that go on
    /// end on the connections they have; no later one uses those, nor resumes their TLS sessions.
    ///
    /// ```swift
    /// var tls = session.configuration.tls
    /// tls.clientIdentities = [try .init("api.example.org", renewed)]
    /// session.reloadTLS(tls)
    /// ```
    /// A file of roots (``Configuration/TLS/TrustRoots-swift.enum/file(_:)``) is looked at before each handshake, and read again when it has
    /// changed, without this; ``configuration`` stays what it was.
    ///
    /// - Parameter settings: `nil` for the same. Roots are read again in both cases, the system's too.
    public nonisolated func reloadTLS(_ settings: Configuration.TLS? = nil) {
        core.pool.connector.secure.renew(settings)
        core.pool.closeIdle()
    }
}

extension Session {
    /// What comes next goes over new connections, but for those that are in use now.
    package nonisolated func closeIdleConnections() { core.pool.closeIdle() }
}
