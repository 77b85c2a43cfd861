// SPDX-License-Identifier: Apache-2.0

extension FTPTestServer {
    /// The configuration of an FTP test server: address, TLS, users and features.
    ///
    /// ```swift
    /// var configuration = FTPTestServer.Configuration(tls: .init(try authority.issue()))
    /// configuration.users = ["ada": "secret"]
    /// ```
    public struct Configuration: Sendable {
        /// The moment at which TLS begins.
        public enum Security: Sendable, Hashable {
            /// After AUTH TLS, if the server has TLS; clients may do without.
            case explicit
            /// After AUTH TLS, which is required for a login.
            case requiresExplicit
            /// Before the greeting.
            case implicit
        }
        /// The address to listen on; Unix sockets are not supported.
        public var address = HTTPTestServer.Configuration.Address.ipv4
        /// The host in the server's URLs; `nil` for its address, or for `localhost` if it has TLS.
        public var name: String?
        /// The TLS identity; `nil` for a server without TLS.
        public var tls: HTTPTestServer.TLS?
        /// When the control connection is encrypted, if ``tls`` is set; by default on request (AUTH TLS).
        public var security = Security.explicit
        /// User names and their passwords.
        public var users: [String: String] = [:]
        /// Whether the user `anonymous` may log in with any password.
        public var allowsAnonymous = true
        /// An account that is requested after the password; `nil` for none.
        public var account: String?
        /// The features that FEAT lists (RFC 2389); `nil` for a server without FEAT.
        public var features: [String]? = [
            "EPSV", "MDTM", "MLST type*;size*;modify*;", "REST STREAM", "SIZE", "TVFS", "UTF8",
        ]

        /// Whether the 150 reply announces the size of a fetched file in bytes, as many servers do.
        public var announcesSize = false

        /// Creates a configuration for 127.0.0.1, without TLS, open to all users.
        public init() {}

        /// Creates a configuration with TLS.
        public init(tls: HTTPTestServer.TLS, security: Security = .explicit) {
            self.tls = tls
            self.security = security
        }
    }
}

/// A fault of the server. Commands are identified by their verb in capitals; the verb of the greeting is empty.
public enum FTPFault: Sendable, Hashable {
    /// Replies to a command with these bytes, without executing it.
    case reply(to: String, String)
    /// Closes the control connection instead of replying.
    case close(at: String)
    /// Closes one control connection instead of replying; later ones work.
    case closeOnce(at: String)
    /// Never replies.
    case stall(at: String)
    /// Replies with endless lines.
    case endlessReply(to: String)
    /// Rejects EPSV, and names the address of another machine in its 227 reply.
    case foreignPassiveAddress
    /// Sends an unencrypted `230` right after its reply to AUTH, which the client would read after the handshake.
    case injectsBeforeTLS
    /// Reports the end of a transfer before it has begun.
    case completesBeforeData
    /// Never reports the end of a transfer.
    case neverCompletes
    /// Sends only this number of bytes, and reports the transfer as complete.
    case shortData(Int)
    /// Sends only this number of bytes, closes the data connection, and replies 426.
    case abortsData(after: Int)
    /// Sends only this number of bytes, and then stalls.
    case stallsData(after: Int)
    /// Accepts this number of bytes of an upload, then replies with this code and keeps reading.
    case refusesStore(code: Int, after: Int)
    /// Replies 150, and ignores the data connection.
    case ignoresData
    /// Reports a wrong size.
    case wrongSize(Int64)
    /// Replies 421 to the first command of a second transfer, and closes.
    case refusesReuse
    /// Closes data connections over TLS without close_notify.
    case omitsCloseNotify
}
