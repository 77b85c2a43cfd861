// SPDX-License-Identifier: Apache-2.0

extension Configuration {
    /// Settings of `ftp`. The library uses passive mode only, with data connections to the address of the control
    /// connection.
    ///
    /// ```swift
    /// configuration.ftp.security = .explicit
    /// ```
    /// `ftps` uses TLS from the start, on port 990, whatever is set here. Certificates, pins and identities follow
    /// ``Configuration/tls``.
    public struct FTP: Sendable, Hashable {
        /// Whether an `ftp` connection starts TLS before the login.
        public enum Security: Sendable, Hashable {
            /// No TLS: everything, passwords included, is sent in the clear.
            case none
            /// AUTH TLS (RFC 4217), for the data connections as well. If the server does not support it, the load ends
            /// with ``LoadError/Reason/secureConnectionFailed``.
            case explicit
        }
        /// The security of `ftp` connections; ``Security/none`` by default.
        public var security = Security.none
        /// The account for the few servers that demand one besides the password (ACCT, RFC 959 §4.1.1); `nil` by
        /// default.
        public var account: String?

        /// Creates the default settings.
        public init() {}
    }
}
