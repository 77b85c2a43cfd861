public import FoundationEssentials
package import URLLoadingIO
public import URLLoadingWire

/// How a session behaves: a value, taken when the session is made. Later changes to it reach nobody.
///
/// ```swift
/// var configuration = Configuration.default
/// configuration.idleTimeout = .seconds(10)
/// configuration.headers[.acceptLanguage] = "de"
/// let session = Session(configuration)
/// ```
public struct Configuration: Sendable {
    /// The usual behaviour.
    public static var `default`: Configuration { Configuration() }
    /// The same, and nothing is ever written to a file.
    public static var ephemeral: Configuration {
        var configuration = Configuration()
        configuration.isEphemeral = true
        configuration.cache = nil
        return configuration
    }

    /// True for ``ephemeral`` and what is derived from it.
    public private(set) var isEphemeral = false

    // MARK: Time

    /// How long the peer may be silent (while connecting, sending or receiving) before the load ends
    /// with ``LoadError/Reason/idleTimeout``. More than zero; `nil` for no limit. A request may set its own.
    public var idleTimeout: Duration? = .seconds(60)
    /// How long a load may take as a whole, redirects and retries included, before it ends with
    /// ``LoadError/Reason/resourceTimeout``. More than zero; `nil` for no limit. Seven days by default.
    public var resourceTimeout: Duration? = .seconds(7 * 24 * 60 * 60)

    /// How long one attempt to connect may take, from the look-up of the name to the end of the TLS handshake, before
    /// it ends with ``LoadError/Reason/connectTimeout``. More than zero; `nil`, the default, for no limit but
    /// ``idleTimeout`` and ``resourceTimeout``. A request may set its own.
    ///
    /// ```swift
    /// configuration.connectTimeout = .seconds(5)
    /// ```
    /// It covers the look-up, all addresses of the host together, the tunnels through proxies and the TLS handshakes;
    /// of ftp also the login, and once more each data connection. It does not cover a wait for one of the connections that
    /// ``maximumConnectionsPerHost`` allows, a wait for another load that connects to the same server, or the time a
    /// decision takes. A connection that is already open has no such limit. Each try of a ``retryPolicy`` and each of
    /// several ways through proxies has the whole time.
    public var connectTimeout: Duration?

    // MARK: Connections

    /// The most connections to one origin at a time, at least 1. Loads beyond it wait: those
    /// whose task has the higher priority go first, among equals who came first.
    public var maximumConnectionsPerHost = 6
    /// How long an unused connection is kept. Servers commonly close theirs after 60 to 75 seconds;
    /// leaving first spares a retry. Zero: connections are not reused.
    public var idleConnectionLifetime: Duration = .seconds(55)
    /// The most unused connections kept, over all origins.
    public var maximumIdleConnections = 128

    /// After how much silence an HTTP/2 connection is asked with a PING whether it is still there: when it is used
    /// after a rest, and while responses are awaited on it. More than zero; `nil` for never.
    public var http2PingInterval: Duration? = .seconds(15)
    /// How long the answer to that may take before the connection is given up. Its loads then end with
    /// ``LoadError/Reason/connectionLost`` or ``LoadError/Reason/truncated``, or are sent again if nothing speaks against
    /// it. Six times as long while a request's body goes out. The SETTINGS of a new connection must be acknowledged
    /// within twice that. Nothing of this holds if ``http2PingInterval`` is `nil`.
    public var http2PingTimeout: Duration = .seconds(5)

    /// Which versions of HTTP are spoken.
    public var httpVersions = HTTPVersions.automatic

    /// Which versions of HTTP are spoken, and who chooses.
    public enum HTTPVersions: Sendable, Hashable {
        /// Over TLS the server chooses between HTTP/2 and HTTP/1.1 (ALPN, RFC 7301); in the clear HTTP/1.1.
        /// Loads to one server share its HTTP/2 connection: ``Configuration/maximumConnectionsPerHost`` counts connections.
        case automatic
        /// HTTP/1.1 alone.
        case http1Only
        /// HTTP/2 alone, in the clear as well (h2c, RFC 9113 §3.3): for servers known to speak it. With others
        /// the load ends with ``LoadError/Reason/notHTTP2``.
        case http2PriorKnowledge

        /// By TLS, best first.
        var offered: [String] {
            switch self {
            case .automatic: ["h2", "http/1.1"]
            case .http1Only: ["http/1.1"]
            case .http2PriorKnowledge: ["h2"]
            }
        }
    }

    /// What its loads are for, as far as networks need to know. A request may have its own.
    public var trafficClass = TrafficClass.default

    /// How `ftp` is spoken.
    public var ftp = FTP()

    // MARK: Requests

    /// Sent with every request that does not set the same field itself. Credentials among them
    /// (Authorization, Cookie, Proxy-Authorization) and Host do not follow a redirect to another server. A
    /// Proxy-Authorization goes to the proxy alone, and nowhere if there is none.
    public var headers = Headers()
    /// The User-Agent of requests that set none; `nil` sends none.
    public var userAgent: String? = "URLLoading/0.1"
    /// The Accept-Encoding of requests that set none and ask for no range; `nil` sends none. A response is decoded only
    /// if this default was sent: a request that names a coding itself gets the bytes as they were sent. Downloads ask
    /// for no coding, and are decoded if the server codes them all the same.
    public var acceptEncoding: String? = "gzip, deflate, br, zstd"

    /// How long a body waits for the server's 100 if its request has `Expect: 100-continue` (RFC 9110
    /// §10.1.1); then it is sent without. More than zero.
    public var expectContinueTimeout: Duration = .seconds(1)

    // MARK: Tasks

    /// The most body bytes a resumed ``LoadTask`` reads before anybody asks for its body: what is small
    /// is then complete, and its connection free for others. At least 0.
    public var readAhead = 64 * 1024

    /// Where downloads are kept that have no destination, or whose destination is not known yet. A `file`
    /// URL of a folder this process may write to; `TMPDIR`, or `/tmp`, by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    // MARK: What outlives the process

    /// The directory of all that sessions keep in files: the cache, cookies, credentials and what is known of servers that
    /// want TLS alone. A `file` URL; made when there is something to keep, and used only if it is this user's alone.
    ///
    /// `nil`, the default, is a place of this user's and this program's: the cache in `$XDG_CACHE_HOME/<executable>`, all
    /// else in `$XDG_STATE_HOME/<executable>` (`~/.cache`, `~/.local/state`). Programs that name the same directory share
    /// what is in it. What was set explicitly (``cache``, ``Cookies/storage``, ``HSTS/storage``,
    /// ``Authentication/credentialStore``) stays where it is; an ``ephemeral`` session keeps nothing in files.
    ///
    /// If it cannot be written, everything stays in memory: ``ResponseCache/problem``, ``CookieStore/problem`` and
    /// ``HSTSStore/problem`` say so. ``Session/configuration`` names the
    /// stores in use.
    public var storageDirectory: URL?

    // MARK: Cache

    /// Where responses are kept, and answered from; `nil` for nowhere. Any number of sessions may share one.
    ///
    /// ``default`` has the one of this user and program (``ResponseCache/shared``). In an ``ephemeral`` configuration
    /// this is `nil`, and each session made of it has one of its own in memory, gone when the session is invalidated:
    /// see ``cachesInMemory``.
    public var cache: ResponseCache? = .shared
    /// Whether an ephemeral session that is given no ``cache`` keeps responses, in memory and for itself.
    public var cachesInMemory = true
    /// Whether stored responses may answer requests that do not say so themselves.
    public var cachePolicy = Request.CachePolicy.useProtocol
    /// Whether loads of the same thing at the same time share one fetch: those that come second wait until the first has
    /// stored it. Only what is read to its end by the library is waited for (``Session/data(for:decisions:)``,
    /// downloads), and only where a stored response may answer; if it turns out not to be storable, all load it.
    public var coalescesIdenticalRequests = false

    // MARK: Retries

    /// Which failures are worth another try. `nil`, the default: none; only a request that an idle connection lost
    /// before it was answered is sent again, at once and once (RFC 9112 §9.3.1), which no policy changes. A
    /// request may have its own.
    public var retryPolicy: RetryPolicy?

    /// Whether a load that finds no network waits for one instead of failing: before it connects to another
    /// machine, ``NetworkMonitor/shared`` knows of no way there, or of none that the three settings on networks
    /// below allow. ``LoadEvent/waitingForConnectivity`` tells of it, once for each wait. A request may
    /// say otherwise.
    ///
    /// The idle timeout stands still meanwhile, the resource timeout does not. This machine is never waited for; a
    /// connection that was kept is used without asking; and a network that leads nowhere is one. Where the path is
    /// ``NetworkPath/Status/unknown`` the load fails as it would without this.
    public var waitsForConnectivity = false

    // MARK: Redirects

    /// The most redirects one load follows; 0 refuses the first with
    /// ``LoadError/Reason/tooManyRedirects``.
    public var maximumRedirects = 20

    // MARK: Limits

    /// What a response may cost.
    public var limits = Limits()

    /// Bounds on what a peer can make this process hold or do. Each is at least 0; there is no "no
    /// limit", but numbers up to 2^30 are taken as they are, larger ones as that.
    public struct Limits: Sendable, Hashable {
        /// Bytes of a response's status line and header fields.
        public var headSize = 64 * 1024
        /// Number of header fields; trailer fields count apart.
        public var fieldCount = 256
        /// Bytes of all chunk extensions of one body.
        public var chunkExtensionSize = 16 * 1024
        /// Bytes of the trailer section.
        public var trailerSize = 16 * 1024
        /// Number of informational (1xx) responses before the final one.
        public var informationalCount = 16
        /// Bytes that ``Session/data(for:decisions:)`` and ``LoadTask/value`` collect at most, counted after decoding;
        /// 256 MiB by default. Larger bodies are for ``Session/load(_:decisions:_:)`` and
        /// ``Session/download(_:to:synchronizing:decisions:)``.
        public var collectedBodySize = 256 << 20
        /// How many times its size compressed content may expand to, judged once 4 MiB came out. One
        /// layer of deflate cannot exceed 1032, so of gzip and deflate by default only layered bombs are
        /// refused. br and zstd have no such bound: content of almost nothing but zeros can exceed it.
        public var decompressionRatio = 1100
        /// Bytes that compressed content may expand to.
        public var decompressedSize = Int64.max
        /// Bytes of the fields of one part of a multipart body. Its content has no limit: it is never held.
        public var partHeadSize = 16 * 1024
        /// Number of fields of one part.
        public var partFieldCount = 64
        /// Number of parts of one body; of `multipart/x-mixed-replace`, which has no end, any number.
        public var partCount = 1024
        /// Bytes of one line of server-sent events.
        public var eventLineSize = 1 << 20
        /// Bytes of one server-sent event, data and type.
        public var eventSize = 8 << 20

        public init() {}
    }

    // MARK: Networks

    /// Which addresses may be connected to; every one by default. For servers that load URLs given by
    /// others: ``AddressPolicy/publicOnly``.
    public var addressPolicy = AddressPolicy.any

    /// Whether connections may be made, and used again, while the way to others is a mobile network
    /// (``NetworkPath/usesCellular``); if not, the load ends with
    /// ``LoadError/Reason/notAllowedOnCellularNetwork``. A request may say otherwise.
    ///
    /// This and the two below are judged when the host's addresses are known, by
    /// ``NetworkMonitor/shared``. Connections to this machine are always allowed, and so are all while the path is
    /// ``NetworkPath/Status/unknown``. Transfers that are going on are not ended.
    public var allowsCellularAccess = true
    /// The same while use of the network costs by volume (``NetworkPath/isExpensive``).
    public var allowsExpensiveNetworkAccess = true
    /// The same while the user wants little traffic (``NetworkPath/isConstrained``).
    public var allowsConstrainedNetworkAccess = true

    /// Where to connect to in place of what URLs say; the first that fits counts. None by default.
    public var addressOverrides: AddressOverrides = []

    /// Which interface or address of this machine connections come from; `nil` for the one the routes choose.
    public var networkInterface: NetworkInterface?

    /// Who looks up the names of hosts; ``NameResolver/system`` by default.
    public var nameResolver: NameResolver {
        get { NameResolver(resolver) }
        set { resolver = newValue.resolver }
    }

    // MARK: Proxies

    /// Which requests go through a proxy: by default those that the environment says.
    public var proxyPolicy = ProxyPolicy.environment

    // MARK: Authentication

    /// How loads prove who they are, and where from.
    public var authentication = Authentication()

    // MARK: Cookies

    /// Which cookies go with requests, and where they are kept.
    public var cookies = Cookies()

    // MARK: Security

    /// Which servers are known to be spoken to over TLS alone, and where that is kept.
    public var hsts = HSTS()

    /// What a secure connection must fulfil.
    public var tls = TLS()

    /// What a secure connection must fulfil.
    public struct TLS: Sendable, Hashable {
        /// Protocol versions in use.
        public enum Version: Int, Sendable, Hashable, Comparable {
            case tls12 = 12
            case tls13 = 13
            public static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }
        }
        /// Which issuers are trusted.
        public enum TrustRoots: Sendable, Hashable {
            /// Those of the system; `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
            case system
            /// Those in a PEM file, and no others.
            case file(URL)
            /// These, in PEM, and no others.
            case pem(String)
            /// Those of the system and these, in PEM.
            case systemAnd(pem: String)
        }
        /// The lowest version accepted.
        public var minimumVersion = Version.tls12
        /// The highest version offered.
        public var maximumVersion = Version.tls13
        /// Which issuers are trusted.
        public var trustRoots = TrustRoots.system
        /// What the chains of some servers must hold besides being trusted; none by default.
        public var pins: [Pins] = []
        /// Every key and signature of a chain must be at least so strong.
        public var minimumStrength = Strength.bits112
        /// What is made of a certificate's status that its server brings along; nothing by default.
        public var ocspStapling = OCSPStapling.ignored
        /// Who we are to servers that ask; the first that fits a host is given. Nobody by default. A decision
        /// (``Decisions/challenge``) may give another. Only where one fits may a server also ask later (RFC 8446
        /// §4.6.2).
        public var clientIdentities: [HostIdentity] = []
        /// Turns all verification off: whoever sits between can read and change everything.
        /// For experiments on a machine of your own.
        public var unsafelySkipsVerification = false

        public init() {}
    }

    // MARK: Inside the package

    /// Sees the bytes of every HTTP/1 connection and the frames of every HTTP/2 one, in the clear: `urlload --trace`.
    package var wireTap: (@Sendable (WireTapEvent) -> Void)?
    /// Another way from a name to addresses: tests.
    package var resolver: any Resolver = SystemResolver.shared
    /// Another way from a route to a transport: tests with scripted transports.
    package var dial: (@Sendable (Origin, StopToken) async throws(IOFailure) -> any Transport)?

    /// Who knows the networks: tests script their own.
    package var networkMonitor = NetworkMonitor.shared

    /// Kept by somebody else, in the place of ``cache``.
    package var foreignCache: (any ForeignCache)?
    /// Hears what became of each look into the cache, and why: `urlload -v`.
    package var cacheTap: (@Sendable (String) -> Void)?
    /// Seconds since 1970, for the ages of responses: tests say what time it is.
    package var wallClock: (@Sendable () -> Double)?

    /// Whose time deadlines are taken from: tests move their own.
    package var clock = LoopClock.system

    /// Settings of the floors above: custom handlers and observers.
    var attachments = Properties()

    private init() {}
}

/// What passed over one connection.
package enum WireTapEvent: Sendable {
    case connected(String, connection: Int)
    case sent([UInt8], connection: Int)
    case received([UInt8], connection: Int)
    /// A frame of HTTP/2 has begun to be sent or received: what it is, in one line.
    case frame(String, isSent: Bool, connection: Int)
    /// The head of a message of HTTP/2, its first line made up: `stream 1: GET / HTTP/2`.
    case head(String, Headers, isSent: Bool, connection: Int)
    case closed(connection: Int)
}
