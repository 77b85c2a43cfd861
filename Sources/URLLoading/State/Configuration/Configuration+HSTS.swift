// SPDX-License-Identifier: Apache-2.0

// The public settings of HTTP Strict Transport Security, and what they mean for a session.

extension Configuration {
    /// HTTP Strict Transport Security: the known servers that demand TLS, and where they are stored.
    ///
    /// ```swift
    /// configuration.hsts.storage = .none   // http stays http
    /// ```
    public struct HSTS: Sendable {
        /// The HSTS store. By default ``HSTSStore/shared``; an ephemeral session has a store of its own.
        /// ``Session/hsts`` is that store.
        public var storage = Storage.automatic
        /// Allows a decision to trust a certificate that fails its checks although the server has an HSTS policy, which
        /// forbids that (RFC 6797 §8.4, §12.1). For experiments on a machine of your own; `false` by default.
        public var unsafelyAllowsUntrustedCertificates = false

        /// Creates the default settings.
        public init() {}

        /// The place where hosts are stored.
        public enum Storage: Sendable {
            /// In ``HSTSStore/shared``; for an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this store.
            case store(HSTSStore)
            /// No store: no server is known, and none is remembered.
            case none
        }
    }
}

extension StrictTransportRules {
    /// Fails if the configuration has no HSTS store.
    init?(_ configuration: Configuration) {
        let settings = configuration.hsts
        let (store, isOwn): (HSTSStore, Bool)
        switch settings.storage {
        case .none: return nil
        case .store(let own): (store, isOwn) = (own, false)
        case .automatic where configuration.isEphemeral: (store, isOwn) = (HSTSStore(), true)
        case .automatic: (store, isOwn) = (.shared, false)
        }
        self.init(
            store: store, isOwn: isOwn,
            allowsUntrustedCertificates: settings.unsafelyAllowsUntrustedCertificates)
    }
}
