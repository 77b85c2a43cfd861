extension Configuration {
    /// How `ftp` is spoken: in passive mode alone, the data going where the control connection goes.
    ///
    /// ```swift
    /// configuration.ftp.security = .explicit
    /// ```
    /// `ftps` begins with TLS on port 990, whatever is set here. Certificates, pins and identities are those of
    /// ``Configuration/tls``.
    public struct FTP: Sendable, Hashable {
        /// Whether `ftp` becomes secure before anything is said.
        public enum Security: Sendable, Hashable {
            /// In the clear, passwords and all.
            case none
            /// By AUTH TLS (RFC 4217); a server that cannot ends the load with
            /// ``LoadError/Reason/secureConnectionFailed``. The data are protected as well.
            case explicit
        }
        /// By default `ftp` is in the clear, as everywhere.
        public var security = Security.none
        /// For the few servers that ask for an account besides a password (ACCT, RFC 959 §4.1.1).
        public var account: String?

        public init() {}
    }
}
