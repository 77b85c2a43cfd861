public import FoundationEssentials
import URLLoadingIO

extension Configuration {
    /// How the loads of a session prove who they are: where credentials come from when nobody is asked
    /// (``Decisions/challenge``), and which ways to authenticate may be gone.
    ///
    /// ```swift
    /// configuration.authentication.credentialStore = CredentialStore()
    /// configuration.authentication.methods = [.digest, .negotiate]   // never a password in the clear
    /// configuration.authentication.netrc = .standard
    /// ```
    /// A request that has an Authorization field of its own is its caller's to authenticate: nobody is asked, and a
    /// 401 to it is its response.
    public struct Authentication: Sendable {
        /// Where credentials are looked for, and kept. `nil`, the default: in the session's memory, and, unless it is
        /// ephemeral, in ``CredentialStore/shared``.
        public var credentialStore: CredentialStore?
        /// The ways that may be gone; `nil` for all that are known.
        public var methods: Set<Challenge.Method>?
        /// The ways that may be gone with proxies; `nil`, the default, for those of ``methods``.
        ///
        /// User and password of a ``Proxy`` are said unasked as ``Challenge/Method/basic``. Where that is not among these they
        /// are said when the proxy asks, in a way that is. SOCKS has its own, which nothing here changes.
        public var proxyMethods: Set<Challenge.Method>?
        /// Whether user and password of a ``Proxy`` wait until the proxy asks (407); `false` by default: they are sent with the
        /// first request, as ``Challenge/Method/basic``.
        ///
        /// ```swift
        /// configuration.authentication.waitsForProxyChallenge = true   // a proxy that offers Digest never sees the password
        /// ```
        /// The strongest method that the proxy offers, and ``proxyMethods`` allows, is used then, at the cost of one more
        /// exchange with each proxy and session. SOCKS is not affected.
        public var waitsForProxyChallenge = false
        /// A file of users and passwords, as `ftp` and `curl` read it; `nil`, the default, for none.
        public var netrc: Netrc?
        /// Tokens for some origins, and how to get new ones; `nil` for none.
        public var bearer: BearerTokens?
        /// How long to wait for one answer of the Kerberos library, which may ask a KDC over the network; more than zero.
        /// What takes longer is as if there were no ticket, and the next way that the server offers follows.
        ///
        /// 10 s by default: a KDC that is there answers in milliseconds, and the library's own patience with one that is
        /// not lasts, with several KDCs, for minutes.
        public var kerberosTimeout: Duration = .seconds(10)

        public init() {}

        func methods(isProxy: Bool) -> Set<Challenge.Method>? { isProxy ? proxyMethods ?? methods : methods }
    }
}

/// A file of users and passwords by host: `machine example.org login ada password secret`.
///
/// Read once per session, when a server first asks for what nobody else knows. An entry is good for servers of that
/// name, on any port, and for no proxy. One without a password is none; the password may be anywhere in the entry.
public struct Netrc: Sendable, Hashable {
    let path: String?

    /// The file that `NETRC` names, or `~/.netrc`.
    public static let standard = Netrc(path: nil)

    /// - Parameter url: a `file` URL.
    public static func file(_ url: URL) -> Netrc { Netrc(path: url.path(percentEncoded: false)) }

    /// What is wrong with the file, for people: other users may read it, or one of them owns it. `nil` if it is this user's
    /// alone, or not there. It is read all the same.
    ///
    /// ```swift
    /// if let problem = Netrc.standard.problem { log.warning("\(problem)") }
    /// ```
    /// Looks at the file each time, and may block for that.
    public var problem: String? {
        let path = path ?? NetrcReader.standardPath
        guard PrivateFolder.isOpenToOthers(path) else { return nil }
        return "\(path): other users can read the passwords in it, or write to it; chmod 600 makes it yours alone"
    }
}
