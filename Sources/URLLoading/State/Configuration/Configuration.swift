// SPDX-License-Identifier: Apache-2.0

// In this folder: the settings of a session, and the networks that a request may use (20 files: one group of settings
//     each)

public import FoundationEssentials
package import URLLoadingIO
public import URLLoadingWire

/// The settings of a session: a value, copied when the session is created. Later changes have no effect on the session.
///
/// ```swift
/// var configuration = Configuration.default
/// configuration.timeouts.idle = .seconds(10)
/// configuration.headers[.acceptLanguage] = "de"
/// let session = Session(configuration)
/// ```
/// Most settings are in groups, one level deep: ``timeouts``, ``connections``, ``networks``, ``caching`` and others.
/// Settings that belong to no group stand beside them: the default fields of requests, the folders of files,
/// ``readAhead``, ``strictness``, ``handlers`` and ``observers``.
public struct Configuration: Sendable {
    /// The default settings.
    public static var `default`: Configuration { Configuration() }
    /// The default settings without persistence: nothing is written to a file.
    public static var ephemeral: Configuration {
        var configuration = Configuration()
        configuration.isEphemeral = true
        configuration.caching.store = nil
        return configuration
    }

    /// True for ``ephemeral`` and configurations derived from it.
    public private(set) var isEphemeral = false

    /// The settings of ``background(_:)``; `nil` for a session whose loads run in this process.
    public var background: Background?

    // MARK: Groups

    /// How long a load may take, and how long the peer may be silent.
    public var timeouts = Timeouts()
    /// How many connections are made, how long they are kept, and their versions of HTTP.
    public var connections = Connections()
    /// The networks, addresses and proxies by which connections are made.
    public var networks = Networks()
    /// The cache of responses, and when it answers.
    public var caching = Caching()
    /// How many redirects are followed.
    public var redirects = Redirects()
    /// Which failures are retried.
    public var retries = Retries()

    /// The sources of credentials, and the authentication schemes.
    public var authentication = Authentication()
    /// The cookie policy, and the store of cookies.
    public var cookies = Cookies()
    /// The hosts that require TLS (HSTS, RFC 6797), and their store.
    public var hsts = HSTS()
    /// The requirements of TLS connections.
    public var tls = TLS()
    /// The limits on the size of responses, and on the work that they cause.
    public var limits = Limits()
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

    /// The URL below which ``Session/request(_:method:query:)`` makes its requests, such as
    /// `https://api.example.org/v1`; `nil` by default. Requests with URLs of their own do not use it.
    public var baseURL: URL? {
        get { requestBase.url }
        set { requestBase.url = newValue }
    }
    /// The query items that ``Session/request(_:method:query:)`` adds unless it gets one of that name; none by default.
    /// Requests with URLs of their own do not get them.
    public var defaultQueryItems: [URLQueryItem] {
        get { requestBase.queryItems }
        set { requestBase.queryItems = newValue }
    }
    private var requestBase = RequestBase()

    // MARK: Tasks

    /// The maximum number of body bytes that a resumed ``LoadTask`` reads before a consumer asks for its body; at least
    /// 0; 64 KiB by default. A smaller body is then complete, and its connection can be reused.
    public var readAhead = 64 * 1024

    /// The folder of downloads without a destination, or whose destination is not known yet. A `file` URL of a writable
    /// folder; `TMPDIR`, or `/tmp`, by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    // MARK: Persistence

    /// The directory of the files that sessions keep: the cache, cookies, credentials, HSTS hosts and, in builds with
    /// HTTP/3, where servers offer it. A `file` URL; created when there is something to store, and used only if it
    /// belongs to this user alone.
    ///
    /// `nil`, the default, is a directory of this user and this program: the cache in `$XDG_CACHE_HOME/<executable>`,
    /// all else in `$XDG_STATE_HOME/<executable>` (`~/.cache`, `~/.local/state`). Programs that name the same directory
    /// share its content. Stores that were set explicitly (``Caching/store``, ``Cookies/storage``, ``HSTS/storage``,
    /// ``Authentication/credentialStore``) keep their location; an ``ephemeral`` session writes no files.
    ///
    /// If it cannot be written, everything stays in memory, as ``ResponseCache/problem``, ``CookieStore/problem`` and
    /// ``HSTSStore/problem`` report. ``Session/configuration`` names the stores in use.
    public var storageDirectory: URL?

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

    /// Limits on the memory and work that a peer can cause. Each is at least 0 and cannot be disabled. Those of heads,
    /// fields, chunks, trailers, interim responses, parts and events count as 2^30 above 2^30; those of whole bodies
    /// have no such bound, and each window states its range.
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
        /// fast as it arrives. With 32 MiB, a path of 150 ms carries 100 to 200 MB/s. In HTTP/3 it is the window of a
        /// stream, at most 1 GiB.
        public var http2StreamWindow = 32 << 20
        /// The sum of the windows of one HTTP/2 connection beyond their first 256 KiB, in bytes, 16 KiB to 2 GiB;
        /// 64 MiB by default. Bodies that are read at the same time share it equally. All connections of the process
        /// share 512 MiB. In HTTP/3 it is the window of the connection, at most 1 GiB.
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

    // MARK: Security

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
            /// The system's; `SSL_CERT_FILE` replaces their bundle, and `SSL_CERT_DIR` their directory.
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
        /// chain, over http, 64 KiB and 5 seconds each, from addresses that ``Networks/addressPolicy`` allows and
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
    /// Receives the bytes of every HTTP/1 connection and the frames of every HTTP/2 and HTTP/3 one, unencrypted:
    /// `urlload --trace`.
    package var wireTap: (@Sendable (WireTapEvent) -> Void)?
    /// Makes the transports of connections in place of sockets; tests script it.
    package var dial: (@Sendable (Origin, StopToken) async throws(IOFailure) -> any Transport)?

    /// The source of network changes; tests script their own.
    package var networkMonitor = NetworkMonitor.shared

    /// Whether the session's loads run on the event loop in place of Swift's pool: those of the classic API, whose
    /// programs block the pool's threads until a load has ended.
    package var loadsOnLoop = false

    /// A cache implemented outside the library, in place of ``Caching/store``.
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

/// The settings of ``Session/request(_:method:query:)``: a value of its own, because a mirror of the configuration must
/// not show the keys of services, which are often among query items.
private struct RequestBase: Sendable, CustomReflectable {
    var url: URL?
    var queryItems: [URLQueryItem] = []

    /// The URL without userinfo and query, and the names of the items.
    var customMirror: Mirror {
        Mirror(self, children: ["url": url?.withoutSecrets as Any, "queryItems": queryItems.map(\.name)])
    }
}

/// An event on a connection, for traces.
package enum WireTapEvent: Sendable {
    case connected(String, connection: Int)
    case sent([UInt8], connection: Int)
    case received([UInt8], connection: Int)
    /// An HTTP/2 or HTTP/3 frame that begins to be sent or received, or a packet of QUIC, described on one line.
    case frame(String, isSent: Bool, connection: Int)
    /// A record of the log of an HTTP/3 connection: qlog in JSON-SEQ, without secrets.
    case log([UInt8], connection: Int)
    /// The head of an HTTP/2 message, with a start line for display: `stream 1: GET / HTTP/2`.
    case head(String, Headers, isSent: Bool, connection: Int)
    /// A response that breaks a rule and is read all the same.
    case tolerated(WireViolation, connection: Int)
    case closed(connection: Int)
    /// A load that might have used HTTP/3 uses TCP, for this reason.
    case tookTCP(String)
}
