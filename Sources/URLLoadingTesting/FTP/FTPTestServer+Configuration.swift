import FoundationEssentials
import URLLoading

extension FTPTestServer {
    /// How a server listens, and whom it lets in.
    ///
    /// ```swift
    /// var configuration = FTPTestServer.Configuration(tls: .init(try authority.issue()))
    /// configuration.users = ["ada": "secret"]
    /// ```
    public struct Configuration: Sendable {
        /// Where TLS begins.
        public enum Security: Sendable, Hashable {
            /// With AUTH TLS, if there is TLS at all; a client may do without.
            case explicit
            /// With AUTH TLS, and nobody is let in without.
            case requiresExplicit
            /// Before the greeting.
            case implicit
        }
        /// Where it listens; a path is not to be had.
        public var address = TestOrigin.Configuration.Address.ipv4
        /// The host in its URLs; `nil` for its address, or for `localhost` if it has TLS.
        public var name: String?
        /// Speaks TLS with this identity; `nil` knows none.
        public var tls: TestOrigin.TLS?
        public var security = Security.explicit
        /// Users and their passwords.
        public var users: [String: String] = [:]
        /// Whether anybody who calls himself `anonymous` is let in.
        public var allowsAnonymous = true
        /// An account that is asked for after the password; `nil` asks for none.
        public var account: String?
        /// What it says that it can do (RFC 2389); `nil` knows no FEAT.
        public var features: [String]? = [
            "EPSV", "MDTM", "MLST type*;size*;modify*;", "REST STREAM", "SIZE", "TVFS", "UTF8",
        ]

        /// Whether the 150 announces the size of a file that is fetched, in bytes, as many servers do.
        public var announcesSize = false

        /// On 127.0.0.1, in the clear, for everybody.
        public init() {}

        /// With TLS for those who ask for it.
        public init(tls: TestOrigin.TLS, security: Security = .explicit) {
            self.tls = tls
            self.security = security
        }
    }
}

/// What a server does wrong. A verb is a command's, in capitals; the greeting's is empty.
public enum FTPFault: Sendable, Hashable {
    /// Answers a command with these bytes; nothing else is done about it.
    case reply(to: String, String)
    /// Closes the control connection in place of an answer.
    case close(at: String)
    /// Closes it so once: other connections are well.
    case closeOnce(at: String)
    /// Never answers.
    case stall(at: String)
    /// Answers with lines without end.
    case endlessReply(to: String)
    /// Knows no EPSV, and names another machine's address in its 227.
    case foreignPassiveAddress
    /// Says `230` in the clear behind its answer to AUTH, for the client to find behind the handshake.
    case injectsBeforeTLS
    /// Says how a transfer ended before it has begun.
    case completesBeforeData
    /// Never says how a transfer ended.
    case neverCompletes
    /// Sends so many bytes, and says that it was all.
    case shortData(Int)
    /// Sends so many bytes, closes the data connection, and says why: 426.
    case abortsData(after: Int)
    /// Sends so many bytes, and then nothing.
    case stallsData(after: Int)
    /// Takes so many bytes of what is stored, then answers with this number and goes on listening.
    case refusesStore(code: Int, after: Int)
    /// Says 150, and leaves the data connection alone.
    case ignoresData
    /// Speaks of another size than the file has.
    case wrongSize(Int64)
    /// Says 421 in place of an answer to the first command of a second transfer, and closes.
    case tiresOfReuse
    /// Closes data connections over TLS without close_notify.
    case leavesWithoutNotice
}
