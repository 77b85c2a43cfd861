// SPDX-License-Identifier: Apache-2.0

// Room: the settings of a session, and the networks that a request may use

public import FoundationEssentials
package import URLLoadingIO
public import URLLoadingWire

/// The settings of a session: a value, copied when the session is created. Later changes have no effect on the session.
///
/// ```swift
/// var configuration = Configuration.default
/// configuration.idleTimeout = .seconds(10)
/// configuration.headers[.acceptLanguage] = "de"
/// let session = Session(configuration)
/// ```
public struct Configuration: Sendable {
    /// The default settings.
    public static var `default`: Configuration { Configuration() }
    /// The default settings without persistence: nothing is written to a file.
    public static var ephemeral: Configuration {
        var configuration = Configuration()
        configuration.isEphemeral = true
        configuration.cache = nil
        return configuration
    }

    /// True for ``ephemeral`` and configurations derived from it.
    public private(set) var isEphemeral = false

    /// The settings of ``background(_:)``; `nil` for a session whose loads run in this process.
    public var background: Background?

    // MARK: Timeouts

    /// The idle timeout: how long the peer may be silent (while connecting, sending or receiving) before the load ends
    /// with ``LoadError/Reason/idleTimeout``. More than zero; `nil` for no limit; 60 seconds by default. A request may
    /// set its own.
    public var idleTimeout: Duration? = .seconds(60)
    /// The resource timeout: how long a load may take as a whole, redirects and retries included, before it ends with
    /// ``LoadError/Reason/resourceTimeout``. More than zero; `nil` for no limit; seven days by default.
    public var resourceTimeout: Duration? = .seconds(7 * 24 * 60 * 60)

    /// The connect timeout: how long one connection attempt may take, from the name look-up to the end of the TLS
    /// handshake, before it ends with ``LoadError/Reason/connectTimeout``. More than zero; `nil`, the default, for no
    /// limit but ``idleTimeout`` and ``resourceTimeout``. A request may set its own.
    ///
    /// ```swift
    /// configuration.connectTimeout = .seconds(5)
    /// ```
    /// It covers the look-up, all addresses of the host together, the tunnels through proxies and the TLS handshakes;
    /// for FTP also the login, and once more each data connection. It does not cover the wait for one of the
    /// ``maximumConnectionsPerHost``, the wait for another load that connects to the same server, the time of
    /// decisions, or the time for which a task is suspended. It does not apply to connections that are already open.
    /// Each retry of a ``retryPolicy`` and each of several proxies has the full timeout.
    public var connectTimeout: Duration?

    // MARK: Connections

    /// The maximum number of simultaneous connections to one origin, at least 1; 6 by default. Further loads wait, in
    /// the order of their task priorities, and in order of arrival within a priority.
    public var maximumConnectionsPerHost = 6
    /// The lifetime of an idle connection; 55 seconds by default. Servers commonly close theirs after 60 to 75 seconds,
    /// and closing first avoids a retry. Zero disables the reuse of connections.
    public var idleConnectionLifetime: Duration = .seconds(55)
    /// The maximum number of idle connections, over all origins; 128 by default.
    public var maximumIdleConnections = 128

    /// The silence after which an HTTP/2 connection is checked with a PING: when it is reused after being idle, and
    /// while responses are awaited on it. More than zero; `nil` for never; 15 seconds by default.
    public var http2PingInterval: Duration? = .seconds(15)
    /// The timeout of the answer to a PING, after which the connection is closed; 5 seconds by default. Its loads then
    /// end with ``LoadError/Reason/connectionLost`` or ``LoadError/Reason/truncated``, or are repeated if that is safe.
    /// The timeout is six times as long while a request's body is sent. The SETTINGS of a new connection must be
    /// acknowledged within twice the timeout. Without an ``http2PingInterval`` it has no effect.
    public var http2PingTimeout: Duration = .seconds(5)

    /// The versions of HTTP in use; ``HTTPVersions/automatic`` by default.
    public var httpVersions = HTTPVersions.automatic

    /// The versions of HTTP in use, and how one is chosen.
    public enum HTTPVersions: Sendable, Hashable {
        /// The server chooses between HTTP/2 and HTTP/1.1 over TLS (ALPN, RFC 7301); without TLS it is HTTP/1.1. Loads
        /// to one server share its HTTP/2 connection: ``Configuration/maximumConnectionsPerHost`` counts connections.
        case automatic
        /// Only HTTP/1.1.
        case http1Only
        /// Only HTTP/2, also without TLS (h2c, RFC 9113 §3.3): for servers known to support it. With others the load
        /// ends with ``LoadError/Reason/notHTTP2``.
        case http2PriorKnowledge

        /// The ALPN names to offer, best first.
        var offered: [String] {
            switch self {
            case .automatic: ["h2", "http/1.1"]
            case .http1Only: ["http/1.1"]
            case .http2PriorKnowledge: ["h2"]
            }
        }
    }

    /// The traffic class of the session's loads, by which networks order packets. A request may set its own.
    public var trafficClass = TrafficClass.default

    /// The settings of `ftp`.
    public var ftp = FTP()

    // MARK: Requests

    /// Fields for every request that does not set them itself. Credentials among them (Authorization, Cookie,
    /// Proxy-Authorization) and Host are not sent to another server after a redirect. A Proxy-Authorization is sent
    /// only to the proxy.
    public var headers = Headers()
    /// The User-Agent of requests that set none; `nil` sends none.
    public var userAgent: String? = "URLLoading/0.2"
    /// The Accept of requests that set none; `*/*` by default, which accepts every media type. `nil` sends none, which
    /// means the same (RFC 9110 §12.5.1).
    public var accept: String? = "*/*"
    /// The Accept-Encoding of requests that set none and ask for no range; `nil` sends none. A response is decoded only
    /// if this default was sent: a request that sets Accept-Encoding itself gets the coded bytes. Downloads send
    /// `identity`, and are decoded if the server codes them all the same.
    public var acceptEncoding: String? = "gzip, deflate, br, zstd"

    /// How long a body waits for 100 (Continue) if its request has `Expect: 100-continue` (RFC 9110 §10.1.1); then it
    /// is sent without it. More than zero; one second by default.
    public var expectContinueTimeout: Duration = .seconds(1)

    // MARK: Tasks

    /// The maximum number of body bytes that a resumed ``LoadTask`` reads before a consumer asks for its body; at least
    /// 0; 64 KiB by default. A smaller body is then complete, and its connection can be reused.
    public var readAhead = 64 * 1024

    /// The folder of downloads without a destination, or whose destination is not known yet. A `file` URL of a writable
    /// folder; `TMPDIR`, or `/tmp`, by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    // MARK: Persistence

    /// The directory of the files that sessions keep: the cache, cookies, credentials and HSTS hosts. A `file` URL;
    /// created when there is something to store, and used only if it belongs to this user alone.
    ///
    /// `nil`, the default, is a directory of this user and this program: the cache in `$XDG_CACHE_HOME/<executable>`,
    /// all else in `$XDG_STATE_HOME/<executable>` (`~/.cache`, `~/.local/state`). Programs that name the same directory
    /// share its content. Stores that were set explicitly (``cache``, ``Cookies/storage``, ``HSTS/storage``,
    /// ``Authentication/credentialStore``) keep their location; an ``ephemeral`` session writes no files.
    ///
    /// If it cannot be written, everything stays in memory, as ``ResponseCache/problem``, ``CookieStore/problem`` and
    /// ``HSTSStore/problem`` report. ``Session/configuration`` names the stores in use.
    public var storageDirectory: URL?

    // MARK: Cache

    /// The cache of responses; `nil` for none. Any number of sessions may share one.
    ///
    /// ``default`` has the cache of this user and program (``ResponseCache/shared``). In an ``ephemeral`` configuration
    /// this is `nil`, and each session made of it has a cache of its own in memory, which ends when the session is
    /// invalidated: see ``cachesInMemory``.
    public var cache: ResponseCache? = .shared
    /// Whether an ephemeral session without a ``cache`` has one of its own in memory; true by default.
    public var cachesInMemory = true
    /// The cache policy of requests that have none of their own.
    public var cachePolicy = Request.CachePolicy.useProtocol
    /// Whether simultaneous loads of the same URL share one fetch: later ones wait until the first has stored its
    /// response; false by default. Only a body that the library reads to its end is shared
    /// (``Session/data(for:decisions:)``, downloads), and only if a stored response may answer. If the response turns
    /// out not to be storable, each load fetches it.
    public var coalescesIdenticalRequests = false

    // MARK: Retries

    /// The retry policy. `nil`, the default, retries no failures. Independently of the policy, a request that was lost
    /// on an idle connection before it was answered is sent again, at once and once (RFC 9112 §9.3.1). A request may
    /// set its own.
    public var retryPolicy: RetryPolicy?

    /// Whether a load without a network waits for one instead of failing; false by default. It waits before it connects
    /// to another machine if ``NetworkMonitor/shared`` knows no route, or only routes that the three settings on
    /// networks below forbid. ``LoadEvent/waitingForConnectivity`` is emitted once for each wait. A request may set its
    /// own.
    ///
    /// The idle timeout is suspended meanwhile, the resource timeout runs on. Connections to this machine never wait,
    /// and an idle connection is used without a check. A network without access to the Internet counts as a network. If
    /// the path is ``NetworkPath/Status/unknown`` the load fails as without this setting.
    public var waitsForConnectivity = false

    // MARK: Redirects

    /// The maximum number of redirects per load; 20 by default. 0 refuses the first with
    /// ``LoadError/Reason/tooManyRedirects``.
    public var maximumRedirects = 20

    // MARK: Faults of servers

    /// How responses that break rules of HTTP are read.
    public enum Strictness: String, Sendable, Hashable, CaseIterable {
        /// A response that has one reading by the precedence of the RFCs is read that way, most often as curl and
        /// browsers do, and nothing follows it on its connection of HTTP/1. ``HTTPHead/violations`` names what was
        /// tolerated.
        case tolerant
        /// It ends the load with the reason that names the fault, such as ``LoadError/Reason/bareLineFeed``.
        case strict
    }

    /// How responses that break rules of HTTP are read; ``Strictness/tolerant`` by default. Responses without a
    /// reading, such as one with two different lengths, are refused in any case.
    public var strictness = Strictness.tolerant

    // MARK: Limits

    /// The limits on the size of responses, and on the work that they cause.
    public var limits = Limits()

    /// Limits on the memory and work that a peer can cause. Each is at least 0 and cannot be disabled. Numbers above
    /// 2^30 count as 2^30.
    public struct Limits: Sendable, Hashable {
        /// The maximum size of a response's status line and header fields, in bytes.
        public var headSize = 64 * 1024
        /// The maximum number of header fields; trailer fields are counted separately.
        public var fieldCount = 1_000
        /// The maximum size of all chunk extensions of one body, in bytes.
        public var chunkExtensionSize = 16 * 1024
        /// The maximum size of the trailer section, in bytes.
        public var trailerSize = 16 * 1024
        /// The maximum number of interim (1xx) responses before the final one.
        public var informationalCount = 16
        /// The maximum body that ``Session/data(for:decisions:)`` and `value` of a task collect, in bytes after
        /// decoding; 256 MiB by default. Use ``Session/load(_:decisions:_:)`` and
        /// ``Session/download(_:to:synchronizing:decisions:)`` for larger bodies.
        public var collectedBodySize = 256 << 20
        /// The maximum expansion factor of compressed content, checked once 4 MiB were decoded; 1100 by default. One
        /// layer of deflate cannot exceed 1032, so the default refuses only nested gzip and deflate bombs. br and zstd
        /// have no such bound: content that is almost all zeros can exceed it.
        public var decompressionRatio = 1100
        /// The maximum size of decompressed content, in bytes.
        public var decompressedSize = Int64.max
        /// The largest window of an HTTP/2 response body, in bytes, 16 KiB to 2 GiB; 32 MiB by default. The window is
        /// what the server may send before it hears that the body was read, and so what an unread body holds in memory
        /// (RFC 9113 §5.2). It begins with 256 KiB, and grows to what the path holds as long as the body is read as
        /// fast as it arrives. With 32 MiB, a path of 150 ms carries 100 to 200 MB/s.
        public var http2StreamWindow = 32 << 20
        /// The sum of the windows of one HTTP/2 connection beyond their first 256 KiB, in bytes, 16 KiB to 2 GiB;
        /// 64 MiB by default. Bodies that are read at the same time share it equally. All connections of the process
        /// share 512 MiB.
        public var http2ConnectionWindow = 64 << 20
        /// The maximum size of the fields of one part of a multipart body, in bytes. The content of a part is streamed
        /// and has no limit.
        public var partHeadSize = 16 * 1024
        /// The maximum number of fields of one part.
        public var partFieldCount = 64
        /// The maximum number of parts of one body, except for `multipart/x-mixed-replace`, which has no end.
        public var partCount = 1024
        /// The maximum size of one line of server-sent events, in bytes.
        public var eventLineSize = 1 << 20
        /// The maximum size of one server-sent event, data and type, in bytes.
        public var eventSize = 8 << 20

        /// Creates the default settings.
        public init() {}
    }

    // MARK: Networks

    /// The addresses that may be connected to; all by default. For servers that load URLs of their users:
    /// ``AddressPolicy/publicOnly``.
    public var addressPolicy = AddressPolicy.any

    /// Whether connections may be made, and reused, over a mobile network (``NetworkPath/usesCellular``); true by
    /// default. If not, the load ends with ``LoadError/Reason/notAllowedOnCellularNetwork``. A request may set its own.
    ///
    /// This and the two settings below are checked when the host's addresses are known, with ``NetworkMonitor/shared``.
    /// Connections to this machine are always allowed, and so are all while the path is ``NetworkPath/Status/unknown``.
    /// Running transfers are not ended.
    public var allowsCellularAccess = true
    /// Whether connections may use a network that charges by volume (``NetworkPath/isExpensive``); true by default.
    public var allowsExpensiveNetworkAccess = true
    /// Whether connections may use a network while the user wants little traffic (``NetworkPath/isConstrained``); true
    /// by default.
    public var allowsConstrainedNetworkAccess = true

    /// Addresses to connect to in place of those in URLs; the first match applies. None by default.
    public var addressOverrides: AddressOverrides = []

    /// The local interface or address of connections; `nil` for the one that the routing table chooses.
    public var networkInterface: NetworkInterface?

    /// The resolver of host names; ``NameResolver/system`` by default.
    public var nameResolver: NameResolver {
        get { NameResolver(resolver) }
        set { resolver = newValue.resolver }
    }

    // MARK: Proxies

    /// The rules that select a proxy for a request; by default the environment's variables.
    public var proxyPolicy = ProxyPolicy.environment

    // MARK: Authentication

    /// The sources of credentials, and the authentication schemes.
    public var authentication = Authentication()

    // MARK: Cookies

    /// The cookie policy, and the store of cookies.
    public var cookies = Cookies()

    // MARK: Security

    /// The hosts that require TLS (HSTS, RFC 6797), and their store.
    public var hsts = HSTS()

    /// The requirements of TLS connections.
    public var tls = TLS()

    /// The requirements of TLS connections.
    public struct TLS: Sendable, Hashable {
        /// The versions of TLS that may be used.
        public enum Version: Int, Sendable, Hashable, Comparable {
            /// TLS 1.0 (RFC 2246), which is not safe: only for hosts of ``unsafeConcessions``.
            case tls10 = 10
            /// TLS 1.1 (RFC 4346), which is not safe: only for hosts of ``unsafeConcessions``.
            case tls11 = 11
            /// TLS 1.2 (RFC 5246).
            case tls12 = 12
            /// TLS 1.3 (RFC 8446).
            case tls13 = 13
            public static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }
        }
        /// The trusted root certificates.
        public enum TrustRoots: Sendable, Hashable {
            /// The system's; `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
            case system
            /// Only those in a PEM file.
            case file(URL)
            /// Only these, in PEM.
            case pem(String)
            /// The system's and these, in PEM.
            case systemAnd(pem: String)
        }
        /// The lowest version accepted; TLS 1.2 or 1.3. A lower one ends every handshake with
        /// ``LoadError/Reason/noCommonTLSVersion``: it can be conceded to hosts (``unsafeConcessions``).
        public var minimumVersion = Version.tls12
        /// The highest version offered.
        public var maximumVersion = Version.tls13
        /// The trusted root certificates; the system's by default.
        public var trustRoots = TrustRoots.system
        /// Pins: keys or certificates that the chains of some hosts must contain in addition to being trusted; none by
        /// default.
        public var pins: [Pins] = []
        /// The minimum strength of every key and signature of a chain.
        public var minimumStrength = Strength.bits112
        /// The treatment of a stapled OCSP response; ignored by default.
        public var ocspStapling = OCSPStapling.ignored
        /// Client certificates by host: the first match is presented to a server that requests one. None by default. A
        /// decision (``Decisions/challenge``) may choose another. Only with a match may a server also request one after
        /// the handshake (RFC 8446 §4.6.2).
        public var clientIdentities: [HostIdentity] = []
        /// What is accepted of hosts whose TLS is too old to be safe; none by default.
        public var unsafeConcessions: [UnsafeConcessions] = []
        /// Whether the certificate of an issuer that a server did not send is fetched from the address in the
        /// certificate that it issued (Authority Information Access, RFC 5280 §4.2.2.1), as browsers do; off by
        /// default.
        ///
        /// The address tells its server that this client connects to the host. At most three issuers are fetched for a
        /// chain, over http, 64 KiB and 5 seconds each, from addresses that ``Configuration/addressPolicy`` allows and
        /// through the session's proxies. They are verified as if the server had sent them, and remembered in memory.
        /// If that fails, the error is ``LoadError/Reason/certificateUntrusted``, and says why. Proxies must send
        /// complete chains.
        public var fetchesMissingIssuers = false
        /// Disables all verification: a machine-in-the-middle can read and change everything. For experiments on your
        /// own machine only.
        public var unsafelySkipsVerification = false

        /// Creates the default settings.
        public init() {}
    }

    // MARK: For this package

    /// The version in the request line of HTTP/1 requests. After a request of HTTP/1.0 its connection is closed, and
    /// its body needs a known length.
    package var requestVersion = HTTPVersion.http11
    /// The local ports and keep-alive probes of sockets; by default the system's port, and no probes.
    package var sockets = SocketSetup()
    /// Receives the bytes of every HTTP/1 connection and the frames of every HTTP/2 one, unencrypted: `urlload
    /// --trace`.
    package var wireTap: (@Sendable (WireTapEvent) -> Void)?
    /// The resolver behind ``nameResolver``; tests replace it.
    package var resolver: any Resolver = SystemResolver.shared
    /// Makes the transports of connections in place of sockets; tests script it.
    package var dial: (@Sendable (Origin, StopToken) async throws(IOFailure) -> any Transport)?

    /// The source of network changes; tests script their own.
    package var networkMonitor = NetworkMonitor.shared

    /// Whether the session's loads run on the event loop in place of Swift's pool: those of the classic API, whose
    /// programs block the pool's threads until a load has ended.
    package var loadsOnLoop = false

    /// A cache implemented outside the library, in place of ``cache``.
    package var foreignCache: (any ForeignCache)?
    /// Receives the result of each cache look-up with its reason: `urlload -v`.
    package var cacheTap: (@Sendable (String) -> Void)?
    /// The time of day in seconds since 1970, for the ages of responses; tests set it.
    package var wallClock: (@Sendable () -> Double)?

    /// The clock of timeouts and deadlines; tests advance their own.
    package var clock = LoopClock.system

    /// Settings of higher layers: custom handlers and observers.
    var attachments = Properties()

    private init() {}
}

/// An event on a connection, for traces.
package enum WireTapEvent: Sendable {
    case connected(String, connection: Int)
    case sent([UInt8], connection: Int)
    case received([UInt8], connection: Int)
    /// An HTTP/2 frame that begins to be sent or received, described on one line.
    case frame(String, isSent: Bool, connection: Int)
    /// The head of an HTTP/2 message, with a start line for display: `stream 1: GET / HTTP/2`.
    case head(String, Headers, isSent: Bool, connection: Int)
    /// A response that breaks a rule and is read all the same.
    case tolerated(WireViolation, connection: Int)
    case closed(connection: Int)
}
