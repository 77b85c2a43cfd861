// SPDX-License-Identifier: Apache-2.0

// In this folder: requests, responses and bodies as the caller sees them (22 files: one public type each)

public import FoundationEssentials
import Synchronization
import URLLoadingWire

/// A request to load: a value. A load works on its own copy; later changes do not affect it.
///
/// ```swift
/// var request = Request(url: url, method: .post)
/// request.headers[.contentType] = "application/json"
/// request.body = .data(json)
/// let (data, response) = try await session.data(for: request)
/// ```
/// Keep a request that is used often: its URL is parsed once.
public struct Request: Sendable {
    /// The absolute URL. It is validated when the request is loaded, and sent as it is: dot segments in its path
    /// (`/a/../b`) are kept, as a server may give them a meaning. Those of a redirect's Location are removed (RFC 3986
    /// §5.2.4).
    public var url: URL {
        get { storage.values.url }
        set { mutable.values.url = newValue }
    }
    /// The request method.
    public var method: Method {
        get { storage.values.method }
        set { mutable.values.method = newValue }
    }
    /// The fields to send. Host, Content-Length and Transfer-Encoding are written by the library; a Content-Length
    /// given here must be right. Proxy-Authorization is sent only to the last proxy of the route, if it is an HTTP
    /// proxy, in place of its configured credentials. Proxy-Connection is never sent.
    public var headers: Headers {
        _read { yield storage.values.headers }
        _modify { yield &mutable.values.headers }
    }
    /// The body to send.
    public var body: RequestBody? {
        get { storage.values.body }
        set { mutable.values.body = newValue }
    }
    /// Overrides ``Configuration/Timeouts/idle``; more than zero.
    public var idleTimeout: Duration? {
        get { storage.values.idleTimeout }
        set { mutable.values.idleTimeout = newValue }
    }
    /// Overrides ``Configuration/Timeouts/resource``; more than zero.
    public var resourceTimeout: Duration? {
        get { storage.values.resourceTimeout }
        set { mutable.values.resourceTimeout = newValue }
    }
    /// Overrides ``Configuration/Timeouts/connect``; more than zero.
    public var connectTimeout: Duration? {
        get { storage.values.connectTimeout }
        set { mutable.values.connectTimeout = newValue }
    }
    /// Overrides ``Configuration/Networks/allowsCellular``.
    public var allowsCellularAccess: Bool? {
        get { storage.values.allowsCellular }
        set { mutable.values.allowsCellular = newValue }
    }
    /// Overrides ``Configuration/Networks/allowsExpensive``.
    public var allowsExpensiveNetworkAccess: Bool? {
        get { storage.values.allowsExpensive }
        set { mutable.values.allowsExpensive = newValue }
    }
    /// Overrides ``Configuration/Networks/allowsConstrained``.
    public var allowsConstrainedNetworkAccess: Bool? {
        get { storage.values.allowsConstrained }
        set { mutable.values.allowsConstrained = newValue }
    }
    /// Overrides ``Configuration/Networks/trafficClass``.
    public var trafficClass: TrafficClass? {
        get { storage.values.trafficClass }
        set { mutable.values.trafficClass = newValue }
    }
    /// Overrides ``Configuration/Retries/policy``; ``RetryPolicy/never`` disables retries.
    public var retryPolicy: RetryPolicy? {
        get { storage.values.retryPolicy?.value }
        set { mutable.values.retryPolicy = newValue.map { Boxed($0) } }
    }
    var hasRetryPolicy: Bool { storage.values.retryPolicy != nil }
    /// Overrides ``Configuration/Networks/waitsForConnectivity``.
    public var waitsForConnectivity: Bool? {
        get { storage.values.waitsForConnectivity }
        set { mutable.values.waitsForConnectivity = newValue }
    }
    /// Whether cookies of the session's store are sent, and those of the response stored; true by default. If
    /// ``headers`` has a Cookie field, that field is sent unchanged and the store's cookies are not.
    public var handlesCookies: Bool {
        get { storage.values.handlesCookies }
        set { mutable.values.handlesCookies = newValue }
    }
    /// The document that the request is made for, such as the page of an image; `nil`, the default, for a request of
    /// its own. If the document is of another site (scheme and registrable domain), only cookies with
    /// ``Cookie/SameSite/none`` are sent, and ``CookieStore/AcceptPolicy/onlyFromMainDocument`` stores none. The URL
    /// itself is never sent.
    public var mainDocumentURL: URL? {
        get { storage.values.mainDocumentURL }
        set { mutable.values.mainDocumentURL = newValue }
    }
    /// Whether stored responses may answer; overrides ``Configuration/Caching/policy``.
    public var cachePolicy: CachePolicy? {
        get { storage.values.cachePolicy }
        set { mutable.values.cachePolicy = newValue }
    }

    /// The treatment of the response's content coding (RFC 9110 §8.4).
    package enum ContentDecoding: Sendable, Hashable {
        /// Decode if the session's own Accept-Encoding was sent.
        case ifOffered
        /// Decode every known coding, whatever the Accept-Encoding was. A 206 response to a Range request is part of
        /// the coded representation, and is never decoded.
        case always
        /// Deliver the body as it was sent.
        case never
    }

    /// The treatment of the response's content coding.
    package var contentDecoding: ContentDecoding {
        get { storage.values.contentDecoding }
        set { mutable.values.contentDecoding = newValue }
    }

    /// The treatment of Content-Length and Transfer-Encoding among the request's fields (RFC 9112 §6).
    package enum FramingFields: Sendable, Hashable {
        /// A field that contradicts the body is an error.
        case checked
        /// The fields are replaced by those of the body. `Transfer-Encoding: chunked` has any body sent in chunks.
        case replaced
    }

    /// The treatment of Content-Length and Transfer-Encoding.
    package var framingFields: FramingFields {
        get { storage.values.framingFields }
        set { mutable.values.framingFields = newValue }
    }

    /// The values that the caller or a handler attached. Redirected requests keep them.
    public var properties: Properties {
        get { storage.values.properties }
        set { mutable.values.properties = newValue }
    }

    /// Creates a request. Everything else has a default, and is set by property.
    /// - Parameters:
    ///   - url: the URL to load. An invalid one fails the load with ``LoadError/Reason/badURL``.
    ///   - method: GET by default.
    ///   - headers: fields that take precedence over those of the configuration.
    ///   - body: the content to send.
    public init(url: URL, method: Method = .get, headers: Headers = Headers(), body: RequestBody? = nil) {
        storage = Storage(
            Values(url: url, method: method, headers: headers, body: body, destination: Values.parse(url)))
    }

    /// The use of stored responses for a request. Only responses to GET and HEAD over http and https are stored. The
    /// Cache-Control directives of the request apply in addition (RFC 9111 §5.2.1).
    ///
    /// ```swift
    /// request.cachePolicy = .cacheElseLoad
    /// ```
    public enum CachePolicy: Sendable, Hashable {
        /// The rules of HTTP (RFC 9111): a fresh response is reused, a stale one revalidated, a missing one loaded.
        case useProtocol
        /// Never reuses a stored response. The new response is stored.
        case reload
        /// Never reuses a stored response, and tells intermediate caches the same (`Cache-Control: no-cache`). The new
        /// response is stored.
        case reloadIgnoringCaches
        /// Reuses a stored response only after revalidation. A response that its server declared `immutable` is not
        /// revalidated while it is fresh (RFC 8246). Intermediate caches are told to revalidate, too, by
        /// `Cache-Control: max-age=0`, unless the request has a Cache-Control field of its own (RFC 9111 §5.2.1.1).
        case revalidate
        /// Reuses a stored response whatever its age; loads from the network if there is none.
        case cacheElseLoad
        /// Reuses a stored response whatever its age, or throws ``LoadError/Reason/notInCache``; causes no network
        /// traffic.
        case onlyIfCached

        /// Whether a stored response answers however old it is.
        var acceptsAnyAge: Bool { self == .cacheElseLoad || self == .onlyIfCached }
    }

    // MARK: Storage

    /// One reference, so that passing a request costs one retain. Copied on write while shared; a reader never sees a
    /// change.
    private var storage: Storage

    private var mutable: Storage {
        mutating get {
            if !isKnownUniquelyReferenced(&storage) { storage = storage.copy() }
            return storage
        }
    }

    private final class Boxed<Value: Sendable>: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    // Unchecked: changed only while uniquely referenced.
    private final class Storage: @unchecked Sendable {
        /// The caller's value, which owns the storage, is checked for exclusive access.
        @exclusivity(unchecked)
        var values: Values

        init(_ values: Values) { self.values = values }

        /// Out of line: inlined, the copied values would be in the frame of the accessor that yields `headers`, which
        /// would be so large that each change of the fields allocates it.
        @inline(never)
        func copy() -> Storage { Storage(values) }
    }

    private struct Values: Sendable {
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
        /// Boxed, because it is large and rarely set.
        var retryPolicy: Boxed<RetryPolicy>?
        var waitsForConnectivity: Bool?
        var trafficClass: TrafficClass?
        var handlesCookies = true
        var mainDocumentURL: URL?
        var cachePolicy: CachePolicy?
        var contentDecoding = ContentDecoding.ifOffered
        var framingFields = FramingFields.checked
        var properties = Properties()
        var destination: Result<Destination, WireViolation>

        static func parse(_ url: URL) -> Result<Destination, WireViolation> {
            Result { () throws(WireViolation) in Destination(try Target(url.absoluteString)) }
        }
    }

    /// The names of the stored properties, for the test that classifies them all for background transfers.
    var storedProperties: [String] { Mirror(reflecting: storage.values).children.compactMap(\.label) }

    /// The parsed URL in the form that the wire format and the connection pool need; computed once per URL.
    var destination: Result<Destination, WireViolation> { storage.values.destination }
    /// Whether the URL names a server of http or https.
    var hasDestination: Bool { if case .success = storage.values.destination { true } else { false } }

    /// The origin of a request of http or https; nil for others.
    var origin: Origin? { if case .success(let destination) = destination { destination.target.origin } else { nil } }

    /// Returns whether both requests have the same origin.
    func goes(where other: Request) -> Bool {
        guard case .success(let own) = destination, case .success(let its) = other.destination else {
            guard let own = try? FTPTarget(url.absoluteString), let its = try? FTPTarget(other.url.absoluteString)
            else { return false }
            return own.origin == its.origin
        }
        return own.target.origin == its.target.origin
    }
}

/// The parsed destination of a request.
final class Destination: Sendable {
    let target: Target
    /// The origin of `target`, as the keys of the connection pool hold it.
    let origin: SharedOrigin
    /// The address of a retained key, once it was asked for. An `AtomicLazyReference` would look up its metadata at
    /// each load.
    private let lateKey = Atomic<UInt>(0)

    /// The key of the request's responses in a cache, made at the first call.
    var cacheKey: CacheKey {
        if let known = Self.key(lateKey.load(ordering: .acquiring)) { return CacheKey(known.takeUnretainedValue()) }
        let made = Unmanaged.passRetained(CacheKey(target).storage)
        let (isFirst, address) = lateKey.compareExchange(
            expected: 0, desired: UInt(bitPattern: made.toOpaque()), ordering: .acquiringAndReleasing)
        guard !isFirst, let known = Self.key(address) else { return CacheKey(made.takeUnretainedValue()) }
        made.release()
        return CacheKey(known.takeUnretainedValue())
    }

    private static func key(_ address: UInt) -> Unmanaged<CacheKey.Storage>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged<CacheKey.Storage>.fromOpaque($0) }
    }

    deinit { Self.key(lateKey.load(ordering: .acquiring))?.release() }

    init(_ target: Target) {
        self.target = target
        origin = SharedOrigin(target.origin)
    }
}

/// An origin as one reference, with its hash: the connection pool looks it up twice in each load.
final class SharedOrigin: Sendable, Hashable {
    let value: Origin
    private let digest: Int

    init(_ value: Origin) {
        self.value = value
        digest = value.hashValue
    }

    static func == (first: SharedOrigin, second: SharedOrigin) -> Bool {
        first === second || (first.digest == second.digest && first.value == second.value)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}
