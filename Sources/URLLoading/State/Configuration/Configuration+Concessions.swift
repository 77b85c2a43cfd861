// SPDX-License-Identifier: Apache-2.0

package import URLLoadingIO

extension Configuration.TLS {
    /// What a session accepts of hosts whose TLS is too old to be safe: cameras, printers, control units.
    ///
    /// Each property makes the connections to these hosts less safe, and no others. Only what a host lacks should be
    /// conceded: the error of a handshake names the property with which it would succeed
    /// (``LoadError/Reason/noCommonTLSVersion`` and others), and the metrics say which concessions a connection has
    /// used (``LoadMetrics/Transaction/tlsConcessions``).
    ///
    /// ```swift
    /// var camera = try Configuration.TLS.UnsafeConcessions("camera.local")
    /// camera.minimumVersion = .tls10
    /// camera.minimumStrength = .any
    /// configuration.tls.unsafeConcessions = [camera]
    /// ```
    ///
    /// The certificate is verified as any other is: concede ``minimumStrength`` for a short key, and trust a private
    /// authority with ``Configuration/TLS/trustRoots``.
    public struct UnsafeConcessions: Sendable, Hashable {
        let pattern: TLSHostPattern

        /// The lowest version accepted, in place of ``Configuration/TLS/minimumVersion``; `nil` for that one.
        ///
        /// TLS 1.0 and 1.1 sign the handshake with MD5 and SHA-1 and encrypt with ciphers that can be attacked
        /// (RFC 8996). Versions below 1.2 also permit weaker signatures of the handshake in TLS 1.2.
        public var minimumVersion: Version?
        /// The highest version offered, in place of ``Configuration/TLS/maximumVersion``; `nil` for that one. Some old
        /// servers end a handshake that offers more than they know.
        public var maximumVersion: Version?
        /// The minimum strength of keys and signatures, in place of ``Configuration/TLS/minimumStrength``; `nil` for
        /// that one.
        public var minimumStrength: Strength?
        /// Whether a server without secure renegotiation (RFC 5746) is accepted. An attacker could then place a request
        /// of its own before the client's first one (CVE-2009-3555). The library itself never renegotiates.
        public var allowsInsecureRenegotiation = false
        /// Whether an end of the connection without close_notify (RFC 8446 §6.1) is the end of a response that has
        /// neither a length nor chunks. An attacker can cut such a response anywhere, and it is not stored in a cache.
        /// Responses with a length or with chunks are checked by these in any case. HTTP/1 only.
        public var allowsMissingCloseNotify = false

        /// A strength below ``Configuration/TLS/Strength``.
        public enum Strength: Int, Sendable, Hashable {
            /// Any key and any signature that OpenSSL still supports, such as RSA with 512 bits and MD5. The key
            /// exchange has at least 1024 bits.
            case any = 0
            /// RSA with 1024 bits, curves with 160 bits.
            case bits80 = 1
        }

        /// A concession that a connection has used.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// ``minimumVersion``: TLS 1.0 or 1.1.
            case version
            /// ``minimumStrength``: a key or a signature is weaker than the session otherwise accepts.
            case strength
            /// ``allowsInsecureRenegotiation``.
            case renegotiation
            /// ``allowsMissingCloseNotify``: the response may be incomplete.
            case missingCloseNotify
        }

        /// Creates concessions to a host or to several; by itself it concedes nothing.
        /// - Parameter hosts: a host; `*.example.org` for all its subdomains; `*` for all hosts. Of several entries the
        ///   first that matches applies. Proxies match too.
        /// - Throws: ``LoadError/Reason/badHostPattern``.
        public init(_ hosts: String) throws(LoadError) { pattern = try TLSHostPattern(checking: hosts) }
    }
}

extension TLSRule<TLSConcessions> {
    init(_ given: Configuration.TLS.UnsafeConcessions) {
        var value = TLSConcessions()
        value.minimumVersion = given.minimumVersion.map(TLSVersion.init)
        value.maximumVersion = given.maximumVersion.map(TLSVersion.init)
        value.securityLevel = given.minimumStrength.map { Int32($0.rawValue) }
        value.allowsInsecureRenegotiation = given.allowsInsecureRenegotiation
        value.allowsMissingCloseNotify = given.allowsMissingCloseNotify
        self.init(given.pattern, value)
    }
}

extension Set<Configuration.TLS.UnsafeConcessions.Kind> {
    init(_ used: TLSConcessions.Used) {
        self.init()
        if used.contains(.version) { insert(.version) }
        if used.contains(.strength) { insert(.strength) }
        if used.contains(.renegotiation) { insert(.renegotiation) }
        if used.contains(.missingCloseNotify) { insert(.missingCloseNotify) }
    }
}

extension TLSVersion {
    package init(_ version: Configuration.TLS.Version) {
        self =
            switch version {
            case .tls10: .tls10
            case .tls11: .tls11
            case .tls12: .tls12
            case .tls13: .tls13
            }
    }
}

extension Configuration.TLS.Version {
    init(_ version: TLSVersion) {
        self =
            switch version {
            case .tls10: .tls10
            case .tls11: .tls11
            case .tls12: .tls12
            case .tls13: .tls13
            }
    }
}
