public import Foundation
import Synchronization
package import URLLoading
import URLLoadingIO

/// How a session behaves. A session takes a copy when it is made: later changes do not reach it.
///
/// ```swift
/// let configuration = URLSessionConfiguration.default
/// configuration.timeoutIntervalForRequest = 10
/// configuration.httpAdditionalHeaders = ["Accept-Language": "de"]
/// let session = URLSession(configuration: configuration)
/// ```
/// Options without an effect say so where they stand.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
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
        /// `nil` until it was set.
        var acceptPolicy: HTTPCookie.AcceptPolicy?
        var cookies: HTTPCookieStorage?
        var cache: URLCache?
        var protocolClasses: [AnyClass] = []
        var identifier: String?
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

    /// The same as ``default``.
    @available(*, deprecated, message: "Use URLSessionConfiguration.default")
    public override init() {
        state = Lock(.usual)
    }

    init(_ values: Values) { state = Lock(values) }

    /// For tests: changes what the classic names do not reach.
    final package func adjust(_ change: @escaping @Sendable (inout Configuration) -> Void) {
        state.withLock { $0.adjust = change }
    }

    var values: Values { state.withLock { $0 } }

    /// A new configuration with the usual behaviour.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration(.usual) }

    /// A new configuration with which nothing is ever written to a file.
    open class var ephemeral: URLSessionConfiguration {
        var values = Values()
        values.isEphemeral = true
        values.credentials = URLCredentialStorage()
        values.cookies = HTTPCookieStorage()
        values.cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: nil)
        return URLSessionConfiguration(values)
    }

    /// An independent copy.
    open override func copy() -> Any { copy(with: nil) }
    /// An independent copy.
    open func copy(with zone: NSZone?) -> Any { URLSessionConfiguration(values) }

    final var ownCopy: URLSessionConfiguration { copy() as? URLSessionConfiguration ?? URLSessionConfiguration(values) }

    /// The policy of requests that have none of their own.
    open var requestCachePolicy: URLRequest.CachePolicy {
        get { values.cachePolicy }
        set { state.withLock { $0.cachePolicy = newValue } }
    }

    /// How long the peer may be silent, in seconds; 60 by default. Zero, less, or infinity: no limit. A
    /// request may set its own.
    open var timeoutIntervalForRequest: TimeInterval {
        get { values.requestTimeout }
        set { state.withLock { $0.requestTimeout = newValue } }
    }

    /// How long a task may take as a whole, in seconds; seven days by default. Zero, less, or infinity: no
    /// limit.
    open var timeoutIntervalForResource: TimeInterval {
        get { values.resourceTimeout }
        set { state.withLock { $0.resourceTimeout = newValue } }
    }

    /// Fields sent with every request that does not set them itself: names and values as strings.
    /// Credentials among them do not follow a redirect to another server.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { values.headers }
        set {
            nonisolated(unsafe) let newValue = newValue
            state.withLock { $0.headers = newValue }
        }
    }

    /// Proxies in place of the environment's (`http_proxy` and its kin), which count while it is `nil`; an empty one is
    /// for none at all.
    ///
    /// The keys are CFNetwork's, as strings: `HTTPEnable`, `HTTPProxy`, `HTTPPort` for URLs of http; `HTTPSEnable`,
    /// `HTTPSProxy`, `HTTPSPort` for those of https, which go through a tunnel; `SOCKSEnable`, `SOCKSProxy`, `SOCKSPort`
    /// (SOCKS 5) where there is none of these, and for streams; `kCFProxyUsernameKey`, `kCFProxyPasswordKey` for all;
    /// `ExceptionsList`, an array of names and addresses. Others are ignored. A proxy that is none fails its loads.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { values.proxies }
        set {
            nonisolated(unsafe) let newValue = newValue
            state.withLock { $0.proxies = newValue }
        }
    }

    /// Can be set and read and has no effect: requests are never pipelined.
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 has what it wanted")
    open var httpShouldUsePipelining: Bool {
        get { values.pipelines }
        set { state.withLock { $0.pipelines = newValue } }
    }

    /// The most connections to one host at a time, at least 1; 6 by default.
    open var httpMaximumConnectionsPerHost: Int {
        get { values.connectionsPerHost }
        set { state.withLock { $0.connectionsPerHost = newValue } }
    }

    /// What the requests of the session are for, unless they say so themselves: the packets of their connections are marked
    /// with it (`TrafficClass` of the core), so that networks may order them. Connections are not shared between types.
    open var networkServiceType: URLRequest.NetworkServiceType {
        get { values.serviceType }
        set { state.withLock { $0.serviceType = newValue } }
    }

    /// Whether loads may go over a mobile network.
    open var allowsCellularAccess: Bool {
        get { values.allowsCellular }
        set { state.withLock { $0.allowsCellular = newValue } }
    }

    /// Whether loads may go over a network that costs by volume.
    open var allowsExpensiveNetworkAccess: Bool {
        get { values.allowsExpensive }
        set { state.withLock { $0.allowsExpensive = newValue } }
    }

    /// Whether loads may go over a network on which the user wants little traffic.
    open var allowsConstrainedNetworkAccess: Bool {
        get { values.allowsConstrained }
        set { state.withLock { $0.allowsConstrained = newValue } }
    }

    /// Whether a task that finds no network waits for one; its delegate hears of it (`taskIsWaitingForConnectivity`).
    open var waitsForConnectivity: Bool {
        get { values.waitsForConnectivity }
        set { state.withLock { $0.waitsForConnectivity = newValue } }
    }

    /// The lowest version of TLS accepted; TLS 1.2, and nothing below it.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { values.minimumTLS }
        set { state.withLock { $0.minimumTLS = newValue } }
    }

    /// The highest version of TLS offered; TLS 1.3.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { values.maximumTLS }
        set { state.withLock { $0.maximumTLS = newValue } }
    }

    /// Where credentials are looked for and kept: the user's own for ``default``, one of its own for ``ephemeral``,
    /// nowhere if it is `nil`.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { values.credentials }
        set { state.withLock { $0.credentials = newValue } }
    }

    /// Where responses are kept, and answered from: ``URLCache/shared`` for ``default``, one of its own in memory for
    /// ``ephemeral``, nowhere if it is `nil`.
    open var urlCache: URLCache? {
        get { values.cache }
        set { state.withLock { $0.cache = newValue } }
    }

    /// Classes that are asked whether they load a request before the library does, first to last: subclasses of
    /// ``URLProtocol``. None by default; those that were registered are asked after them.
    open var protocolClasses: [AnyClass]? {
        get { values.protocolClasses }
        set { state.withLock { $0.protocolClasses = newValue ?? [] } }
    }

    // MARK: Of transfers in the background, which are not there yet

    /// The name of a background session. Carried, and of no effect: sessions live as long as the process.
    open var identifier: String? {
        get { values.identifier }
        set { state.withLock { $0.identifier = newValue } }
    }

    /// Whether background transfers may wait for a good moment. Carried, and of no effect.
    open var isDiscretionary: Bool {
        get { values.isDiscretionary }
        set { state.withLock { $0.isDiscretionary = newValue } }
    }

    /// A container that an application and its extensions share: there are none on this platform, so always `nil`.
    open var sharedContainerIdentifier: String? { nil }

    /// Can be set and read and has no effect: connections are kept whatever the process does.
    @available(*, deprecated, message: "Connections are kept as long as their session wants")
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { values.idlesLonger }
        set { state.withLock { $0.idlesLonger = newValue } }
    }

    // MARK: Cookies

    /// Where cookies are kept, and taken from: ``HTTPCookieStorage/shared`` for ``default``, one of its own for
    /// ``ephemeral``, nowhere if it is `nil`.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { values.cookies }
        set { state.withLock { $0.cookies = newValue } }
    }

    /// Which cookies of servers are taken; those of the site of the main document by default. Until it is set the
    /// storage's own (``HTTPCookieStorage/cookieAcceptPolicy``) goes before it, once that was set.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { values.acceptPolicy ?? .onlyFromMainDocumentDomain }
        set { state.withLock { $0.acceptPolicy = newValue } }
    }

    /// Whether cookies of the storage go with requests.
    open var httpShouldSetCookies: Bool {
        get { values.setsCookies }
        set { state.withLock { $0.setsCookies = newValue } }
    }
}
