// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
package import URLLoading
import URLLoadingIO

/// The behaviour of a session. A session copies the configuration when it is created: later changes do not affect it.
///
/// ```swift
/// let configuration = URLSessionConfiguration.default
/// configuration.timeoutIntervalForRequest = 10
/// configuration.httpAdditionalHeaders = ["Accept-Language": "de"]
/// let session = URLSession(configuration: configuration)
/// ```
/// Options without effect are documented as such.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    struct Values: Sendable {
        var isEphemeral = false
        var requestTimeout: TimeInterval = 60
        var resourceTimeout: TimeInterval = 7 * 24 * 60 * 60
        var cachePolicy = URLRequest.CachePolicy.useProtocolCachePolicy
        var connectionsPerHost = 6
        nonisolated(unsafe) var headers: [AnyHashable: Any]?
        nonisolated(unsafe) var proxies: [AnyHashable: Any]?
        var pipelines = false
        var serviceType = URLRequest.NetworkServiceType.default
        var allowsCellular = true
        var allowsExpensive = true
        var allowsConstrained = true
        var adjust: (@Sendable (inout Configuration) -> Void)?
        var waitsForConnectivity = false
        var minimumTLS = tls_protocol_version_t.TLSv12
        var maximumTLS = tls_protocol_version_t.TLSv13
        var credentials: URLCredentialStorage?
        var setsCookies = true
        /// The cookie policy; `nil` until it was set.
        var acceptPolicy: HTTPCookie.AcceptPolicy?
        var cookies: HTTPCookieStorage?
        var cache: URLCache?
        var protocolClasses: [AnyClass] = []
        var identifier: String?
        var isBackground = false
        var sendsLaunchEvents = false
        var isDiscretionary = false
        var idlesLonger = false

        static var usual: Values {
            var values = Values()
            values.credentials = .shared
            values.cookies = .shared
            values.cache = .shared
            return values
        }
    }
    private let state: Lock<Values>

    /// Creates a configuration equal to ``default``.
    @available(*, deprecated, message: "Use URLSessionConfiguration.default")
    public override init() {
        state = Lock(.usual)
    }

    init(_ values: Values) { state = Lock(values) }

    /// For tests: changes core settings that the classic API does not expose.
    final package func adjust(_ change: @escaping @Sendable (inout Configuration) -> Void) {
        state.withLock { $0.adjust = change }
    }

    var values: Values { state.withLock { $0 } }

    /// A new configuration with the default behaviour.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration(.usual) }

    /// A new configuration that never writes to files.
    open class var ephemeral: URLSessionConfiguration {
        var values = Values()
        values.isEphemeral = true
        values.credentials = URLCredentialStorage()
        values.cookies = HTTPCookieStorage()
        values.cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: nil)
        return URLSessionConfiguration(values)
    }

    /// A new configuration for downloads, and uploads of files, that outlive the program: another process, the
    /// background agent (`url-loading-agent`), carries them out.
    ///
    /// ```swift
    /// let session = URLSession(
    ///     configuration: .background(withIdentifier: "org.example.sync"), delegate: receiver, delegateQueue: nil)
    /// session.downloadTask(with: url).resume()
    /// ```
    /// A session that is created later with the same identifier has the tasks that are not over
    /// (``URLSession/getAllTasks(completionHandler:)``), and its delegate gets the calls that were missed. Such a
    /// session needs a delegate. Data tasks, completion handlers, bodies that are not files and URLs other than http
    /// and https fail when the task is resumed, as does every task if the agent cannot use a setting: a credential
    /// storage or a proxy dictionary. The delegate is asked about challenges, but not about redirects. Transfers wait
    /// with their challenges while the program does not run.
    /// - Parameter identifier: the name of the session, 1 to 255 bytes. One live session of a user may have it.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        var values = Values.usual
        (values.isBackground, values.identifier, values.sendsLaunchEvents) = (true, identifier, true)
        (values.credentials, values.cache) = (nil, nil)
        return URLSessionConfiguration(values)
    }

    /// Returns an independent copy.
    open override func copy() -> Any { copy(with: nil) }
    /// Returns an independent copy.
    open func copy(with zone: NSZone?) -> Any { URLSessionConfiguration(values) }

    final var ownCopy: URLSessionConfiguration { copy() as? URLSessionConfiguration ?? URLSessionConfiguration(values) }

    /// The cache policy of requests without one of their own.
    open var requestCachePolicy: URLRequest.CachePolicy {
        get { values.cachePolicy }
        set { state.withLock { $0.cachePolicy = newValue } }
    }

    /// The idle timeout in seconds: how long the peer may be silent; 60 by default. Zero, negative or infinite values
    /// mean no limit. A request may set its own.
    open var timeoutIntervalForRequest: TimeInterval {
        get { values.requestTimeout }
        set { state.withLock { $0.requestTimeout = newValue } }
    }

    /// The maximum duration of a whole task in seconds; seven days by default. Zero, negative or infinite values mean
    /// no limit.
    open var timeoutIntervalForResource: TimeInterval {
        get { values.resourceTimeout }
        set { state.withLock { $0.resourceTimeout = newValue } }
    }

    /// Fields sent with every request that does not set them itself: names and values as strings. Credentials among
    /// them are dropped on a redirect to another origin.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { values.headers }
        set {
            nonisolated(unsafe) let newValue = newValue
            state.withLock { $0.headers = newValue }
        }
    }

    /// The proxies, in place of those of the environment (`http_proxy` and related variables), which apply while this
    /// is `nil`; an empty dictionary disables proxies.
    ///
    /// The keys are CFNetwork's, as strings: `HTTPEnable`, `HTTPProxy`, `HTTPPort` for http URLs; `HTTPSEnable`,
    /// `HTTPSProxy`, `HTTPSPort` for https URLs, which use a tunnel; `SOCKSEnable`, `SOCKSProxy`, `SOCKSPort` (SOCKS 5)
    /// if none of these applies, and for streams; `kCFProxyUsernameKey`, `kCFProxyPasswordKey` for all;
    /// `ExceptionsList`, an array of names and addresses that bypass the proxies. Other keys are ignored. Loads through
    /// an invalid proxy fail.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { values.proxies }
        set {
            nonisolated(unsafe) let newValue = newValue
            state.withLock { $0.proxies = newValue }
        }
    }

    /// Without effect: requests are never pipelined.
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 multiplexes them")
    open var httpShouldUsePipelining: Bool {
        get { values.pipelines }
        set { state.withLock { $0.pipelines = newValue } }
    }

    /// The maximum number of simultaneous connections to one host, at least 1; 6 by default.
    open var httpMaximumConnectionsPerHost: Int {
        get { values.connectionsPerHost }
        set { state.withLock { $0.connectionsPerHost = newValue } }
    }

    /// The purpose of the session's traffic, for requests that do not set their own: packets are marked accordingly
    /// (`TrafficClass` of the core), so that networks can prioritize them. Requests of different types do not share
    /// connections.
    open var networkServiceType: URLRequest.NetworkServiceType {
        get { values.serviceType }
        set { state.withLock { $0.serviceType = newValue } }
    }

    /// Whether loads may use a mobile network.
    open var allowsCellularAccess: Bool {
        get { values.allowsCellular }
        set { state.withLock { $0.allowsCellular = newValue } }
    }

    /// Whether loads may use a metered (expensive) network.
    open var allowsExpensiveNetworkAccess: Bool {
        get { values.allowsExpensive }
        set { state.withLock { $0.allowsExpensive = newValue } }
    }

    /// Whether loads may use a network on which the user wants little traffic (constrained).
    open var allowsConstrainedNetworkAccess: Bool {
        get { values.allowsConstrained }
        set { state.withLock { $0.allowsConstrained = newValue } }
    }

    /// Whether a task waits for a network if none is available; its delegate is notified
    /// (`taskIsWaitingForConnectivity`).
    open var waitsForConnectivity: Bool {
        get { values.waitsForConnectivity }
        set { state.withLock { $0.waitsForConnectivity = newValue } }
    }

    /// The lowest TLS version that is accepted; TLS 1.2 by default. A lower one is accepted from every host of the
    /// session, with the weaker signatures that it needs, but with no weaker certificates. DTLS counts as TLS 1.2.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { values.minimumTLS }
        set { state.withLock { $0.minimumTLS = newValue } }
    }

    /// The highest version of TLS offered; TLS 1.3 by default. Handshakes fail if it is below the lowest version.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { values.maximumTLS }
        set { state.withLock { $0.maximumTLS = newValue } }
    }

    /// The store of credentials: the user's own for ``default``, a private one for ``ephemeral``. With `nil` no storage
    /// is looked up or written: the session remembers a credential that its delegate provides until the session ends,
    /// or is reset, unless the credential's persistence is `none`. A background session has `nil`, and its agent looks
    /// up the user's own store.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { values.credentials }
        set { state.withLock { $0.credentials = newValue } }
    }

    /// The cache of responses: ``URLCache/shared`` for ``default``, a private one in memory for ``ephemeral``; with
    /// `nil` responses are not cached.
    open var urlCache: URLCache? {
        get { values.cache }
        set { state.withLock { $0.cache = newValue } }
    }

    /// Subclasses of ``URLProtocol`` that are asked, in order, whether they load a request, before the library does.
    /// None by default; registered classes are asked after them.
    open var protocolClasses: [AnyClass]? {
        get { values.protocolClasses }
        set { state.withLock { $0.protocolClasses = newValue ?? [] } }
    }

    // MARK: Of transfers in the background

    /// The identifier of a background session, 1 to 255 bytes; see ``background(withIdentifier:)``. Without effect on
    /// other sessions.
    open var identifier: String? {
        get { values.identifier }
        set { state.withLock { $0.identifier = newValue } }
    }

    /// Whether the agent may choose the time of background transfers: they wait for mains power, an unmetered network
    /// and a machine at leisure, for a day at most.
    open var isDiscretionary: Bool {
        get { values.isDiscretionary }
        set { state.withLock { $0.isDiscretionary = newValue } }
    }

    /// Whether the system launches the program for events of a background session. Stored, but without effect: the
    /// events wait until the program creates a session with the identifier. In the async API,
    /// `Configuration.Background.wakes` names the command to start.
    open var sessionSendsLaunchEvents: Bool {
        get { values.sendsLaunchEvents }
        set { state.withLock { $0.sendsLaunchEvents = newValue } }
    }

    /// The container shared by an application and its extensions. Always `nil`, because this platform has none.
    open var sharedContainerIdentifier: String? { nil }

    /// Without effect: connections are kept regardless of the state of the process.
    @available(*, deprecated, message: "Idle connections are kept regardless of the state of the process")
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { values.idlesLonger }
        set { state.withLock { $0.idlesLonger = newValue } }
    }

    // MARK: Cookies

    /// The store of cookies: ``HTTPCookieStorage/shared`` for ``default``, a private one for ``ephemeral``; with `nil`
    /// cookies are neither sent nor stored.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { values.cookies }
        set { state.withLock { $0.cookies = newValue } }
    }

    /// The cookies accepted from servers; those of the site of the main document by default. Until this property is
    /// set, the storage's own policy (``HTTPCookieStorage/cookieAcceptPolicy``), once set, takes precedence.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { values.acceptPolicy ?? .onlyFromMainDocumentDomain }
        set { state.withLock { $0.acceptPolicy = newValue } }
    }

    /// Whether cookies of the storage are sent with requests.
    open var httpShouldSetCookies: Bool {
        get { values.setsCookies }
        set { state.withLock { $0.setsCookies = newValue } }
    }
}
