public import FoundationEssentials
import URLLoadingWire

/// What to load, and how: a value. A load works on its own copy; later changes do not reach it.
///
/// ```swift
/// var request = Request(url: url, method: .post)
/// request.headers[.contentType] = "application/json"
/// request.body = .data(json)
/// let (data, response) = try await session.data(for: request)
/// ```
/// A request that is used often is best kept: its URL is taken apart once.
public struct Request: Sendable {
    /// The absolute URL. Whether it can be loaded is decided when it is.
    public var url: URL {
        get { storage.url }
        set { mutable.url = newValue }
    }
    /// The request method.
    public var method: Method {
        get { storage.method }
        set { mutable.method = newValue }
    }
    /// Fields to send. Host, Content-Length and Transfer-Encoding are written by the library; a
    /// Content-Length given here must be right. Proxy-Authorization goes to the last proxy on the way, if that
    /// speaks HTTP, in place of the credentials it has, and to nobody else; Proxy-Connection goes nowhere.
    public var headers: Headers {
        _read { yield storage.headers }
        _modify { yield &mutable.headers }
    }
    /// What to send after the head.
    public var body: RequestBody? {
        get { storage.body }
        set { mutable.body = newValue }
    }
    /// Overrides ``Configuration/idleTimeout``; more than zero.
    public var idleTimeout: Duration? {
        get { storage.idleTimeout }
        set { mutable.idleTimeout = newValue }
    }
    /// Overrides ``Configuration/resourceTimeout``; more than zero.
    public var resourceTimeout: Duration? {
        get { storage.resourceTimeout }
        set { mutable.resourceTimeout = newValue }
    }
    /// Overrides ``Configuration/connectTimeout``; more than zero.
    public var connectTimeout: Duration? {
        get { storage.connectTimeout }
        set { mutable.connectTimeout = newValue }
    }
    /// Overrides ``Configuration/allowsCellularAccess``.
    public var allowsCellularAccess: Bool? {
        get { storage.allowsCellular }
        set { mutable.allowsCellular = newValue }
    }
    /// Overrides ``Configuration/allowsExpensiveNetworkAccess``.
    public var allowsExpensiveNetworkAccess: Bool? {
        get { storage.allowsExpensive }
        set { mutable.allowsExpensive = newValue }
    }
    /// Overrides ``Configuration/allowsConstrainedNetworkAccess``.
    public var allowsConstrainedNetworkAccess: Bool? {
        get { storage.allowsConstrained }
        set { mutable.allowsConstrained = newValue }
    }
    /// Overrides ``Configuration/trafficClass``.
    public var trafficClass: TrafficClass? {
        get { storage.trafficClass }
        set { mutable.trafficClass = newValue }
    }
    /// Overrides ``Configuration/retryPolicy``; ``RetryPolicy/never`` for one try.
    public var retryPolicy: RetryPolicy? {
        get { storage.retryPolicy?.value }
        set { mutable.retryPolicy = newValue.map { Boxed($0) } }
    }
    var hasRetryPolicy: Bool { storage.retryPolicy != nil }
    /// Overrides ``Configuration/waitsForConnectivity``.
    public var waitsForConnectivity: Bool? {
        get { storage.waitsForConnectivity }
        set { mutable.waitsForConnectivity = newValue }
    }
    /// Whether cookies of the session's store go with it, and those of its answer there; true by default. A Cookie field in
    /// ``headers`` is sent as it is, and then nothing of the store.
    public var handlesCookies: Bool {
        get { storage.handlesCookies }
        set { mutable.handlesCookies = newValue }
    }
    /// On whose behalf it is made: the page, say, that an image belongs to. `nil`, the default, for one that is made for
    /// itself. If it is of another site (scheme and registrable domain), cookies stay at home that are not
    /// ``Cookie/SameSite/none``, and ``CookieStore/AcceptPolicy/onlyFromMainDocument`` takes none. Nothing of it is sent.
    public var mainDocumentURL: URL? {
        get { storage.mainDocumentURL }
        set { mutable.mainDocumentURL = newValue }
    }
    /// Whether stored responses may answer; overrides ``Configuration/cachePolicy``.
    public var cachePolicy: CachePolicy? {
        get { storage.cachePolicy }
        set { mutable.cachePolicy = newValue }
    }

    /// What becomes of the content coding (RFC 9110 §8.4) of the response.
    package enum ContentDecoding: Sendable, Hashable {
        /// It is undone if the session's own Accept-Encoding was sent.
        case ifOffered
        /// A known coding is undone, whatever was asked for. A 206 that answers a Range is part of the coded
        /// representation, and stays as it is.
        case always
        /// The body stays as it was sent.
        case never
    }

    /// What becomes of the content coding of the response.
    package var contentDecoding: ContentDecoding {
        get { storage.contentDecoding }
        set { mutable.contentDecoding = newValue }
    }

    /// What the caller or a handler attached to it. Kept when a redirect leads to another request.
    public var properties: Properties {
        get { storage.properties }
        set { mutable.properties = newValue }
    }

    public init(url: URL, method: Method = .get, headers: Headers = Headers(), body: RequestBody? = nil) {
        storage = Storage(url: url, method: method, headers: headers, body: body)
    }

    /// Whether a stored response may answer a request. Only answers to GET and HEAD over http and https are stored;
    /// what a request asks for besides, by Cache-Control, holds as well (RFC 9111 §5.2.1).
    ///
    /// ```swift
    /// request.cachePolicy = .cacheElseLoad
    /// ```
    public enum CachePolicy: Sendable, Hashable {
        /// As HTTP says (RFC 9111): what is fresh answers, what is stale is asked about, what is missing is loaded.
        case useProtocol
        /// Never a stored response. What is loaded is stored.
        case reload
        /// The same, and caches on the way are told not to answer either (`Cache-Control: no-cache`).
        case reloadIgnoringCaches
        /// A stored response only after its server has said that it still holds. What its server has declared
        /// `immutable` is not asked about while it is fresh (RFC 8246). Caches on the way are told the same, by
        /// `Cache-Control: max-age=0` unless the request has a field of its own (RFC 9111 §5.2.1.1).
        case revalidate
        /// A stored response whatever its age; the network if there is none.
        case cacheElseLoad
        /// A stored response whatever its age, or ``LoadError/Reason/notInCache``: no traffic.
        case onlyIfCached
    }

    // MARK: Storage

    /// One reference, so that a load passes its request around at the cost of one count. Copied when
    /// written while shared; a reader never sees a change.
    private var storage: Storage

    private var mutable: Storage {
        mutating get {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage) }
            return storage
        }
    }

    private final class Boxed<Value: Sendable>: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private final class Storage: @unchecked Sendable {
        var url: URL {
            didSet { destination = Self.parse(url) }
        }
        var method: Method
        var headers: Headers
        var body: RequestBody?
        var idleTimeout: Duration?
        var resourceTimeout: Duration?
        var connectTimeout: Duration?
        var allowsCellular: Bool?
        var allowsExpensive: Bool?
        var allowsConstrained: Bool?
        /// Large, and mostly not there.
        var retryPolicy: Boxed<RetryPolicy>?
        var waitsForConnectivity: Bool?
        var trafficClass: TrafficClass?
        var handlesCookies = true
        var mainDocumentURL: URL?
        var cachePolicy: CachePolicy?
        var contentDecoding = ContentDecoding.ifOffered
        var properties = Properties()
        var destination: Result<Destination, WireViolation>

        init(url: URL, method: Method, headers: Headers, body: RequestBody?) {
            self.url = url
            self.method = method
            self.headers = headers
            self.body = body
            destination = Self.parse(url)
        }

        init(_ other: Storage) {
            url = other.url
            method = other.method
            headers = other.headers
            body = other.body
            idleTimeout = other.idleTimeout
            resourceTimeout = other.resourceTimeout
            connectTimeout = other.connectTimeout
            allowsCellular = other.allowsCellular
            allowsExpensive = other.allowsExpensive
            allowsConstrained = other.allowsConstrained
            retryPolicy = other.retryPolicy
            waitsForConnectivity = other.waitsForConnectivity
            trafficClass = other.trafficClass
            cachePolicy = other.cachePolicy
            contentDecoding = other.contentDecoding
            handlesCookies = other.handlesCookies
            mainDocumentURL = other.mainDocumentURL
            properties = other.properties
            destination = other.destination
        }

        private static func parse(_ url: URL) -> Result<Destination, WireViolation> {
            Result { () throws(WireViolation) in Destination(try Target(url.absoluteString)) }
        }
    }

    /// The URL as the wire and the pool want it, worked out once per URL.
    var destination: Result<Destination, WireViolation> { storage.destination }

    /// Whether it goes to the same origin as another.
    func goes(where other: Request) -> Bool {
        guard case .success(let own) = destination, case .success(let its) = other.destination else {
            guard let own = try? FTPTarget(url.absoluteString), let its = try? FTPTarget(other.url.absoluteString)
            else { return false }
            return own.origin == its.origin
        }
        return own.target.origin == its.target.origin
    }
}

/// Where a request goes.
final class Destination: Sendable {
    let target: Target

    init(_ target: Target) {
        self.target = target
    }
}
