// SPDX-License-Identifier: Apache-2.0

// In this folder: requests of the classic API, as views of the core's

public import Foundation

/// An immutable request object that wraps a ``URLRequest``.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying {
    /// Whether a stored response may be used. The raw values are those of FoundationNetworking, which differ from
    /// Apple's.
    public enum CachePolicy: UInt, Sendable {
        /// Follows the rules of HTTP (RFC 9111).
        case useProtocolCachePolicy = 0
        /// Never uses a stored response.
        case reloadIgnoringLocalCacheData = 1
        /// Never uses a stored response, and requires intermediate caches to revalidate with the origin.
        case reloadIgnoringLocalAndRemoteCacheData = 2
        /// Uses a stored response regardless of its age, and the network if there is none.
        case returnCacheDataElseLoad = 3
        /// Uses a stored response regardless of its age, or fails with `URLError.resourceUnavailable`: no network
        /// access.
        case returnCacheDataDontLoad = 4
        /// Uses a stored response only if the origin confirms that it is still valid.
        case reloadRevalidatingCacheData = 5
        /// The older name of ``reloadIgnoringLocalCacheData``.
        public static var reloadIgnoringCacheData: NSURLRequest.CachePolicy { .reloadIgnoringLocalCacheData }
    }

    /// The purpose of a request's traffic.
    public enum NetworkServiceType: UInt, Sendable {
        /// Ordinary traffic.
        case `default` = 0
        /// Call control for voice over IP; Apple's current name is `callSignaling`.
        case voip = 1
        /// Interactive video, such as video calls.
        case video = 2
        /// Background transfers, without a deadline.
        case background = 3
        /// Interactive voice.
        case voice = 4
        /// Call signaling.
        case networkServiceTypeCallSignaling = 5
        /// Data that a user is waiting for.
        case responsiveData = 6
        /// Audio and video streaming.
        case avStreaming = 8
        /// Interactive audio and video, such as games.
        case responsiveAV = 9
    }

    /// The wrapped value. Set by ``NSMutableURLRequest`` only.
    final var value: URLRequest

    /// Creates a GET request.
    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
    }

    /// Creates a GET request with a cache policy and an idle timeout in seconds.
    public init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        value = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    init(_ value: URLRequest) { self.value = value }

    // MARK: Properties

    /// The URL.
    open var url: URL? { value.url }
    /// The page that loads the URL, for cookies.
    open var mainDocumentURL: URL? { value.mainDocumentURL }
    /// The use of the cache.
    open var cachePolicy: NSURLRequest.CachePolicy { value.cachePolicy }
    /// The idle timeout, in seconds; 0 for none.
    open var timeoutInterval: TimeInterval { value.timeoutInterval }
    /// The method, GET by default.
    open var httpMethod: String? { value.httpMethod }
    /// The header fields.
    open var allHTTPHeaderFields: [String: String]? { value.allHTTPHeaderFields }
    /// Returns the value of a field; the name is case-insensitive.
    open func value(forHTTPHeaderField field: String) -> String? { value.value(forHTTPHeaderField: field) }
    /// The body as data; `nil` for none or a stream.
    open var httpBody: Data? { value.httpBody }
    /// The body as a stream; `nil` for none or data.
    open var httpBodyStream: InputStream? { value.httpBodyStream }
    /// The purpose of the traffic, by which networks order packets.
    open var networkServiceType: NSURLRequest.NetworkServiceType { value.networkServiceType }
    /// Whether a mobile network may be used.
    open var allowsCellularAccess: Bool { value.allowsCellularAccess }
    /// Whether a network that charges by volume may be used.
    open var allowsExpensiveNetworkAccess: Bool { value.allowsExpensiveNetworkAccess }
    /// Whether a network may be used while the user wants little traffic.
    open var allowsConstrainedNetworkAccess: Bool { value.allowsConstrainedNetworkAccess }
    /// Whether cookies are sent and stored.
    open var httpShouldHandleCookies: Bool { value.httpShouldHandleCookies }
    /// Has no effect: requests are never pipelined.
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 multiplexes them")
    open var httpShouldUsePipelining: Bool { value.httpShouldUsePipelining }

    /// The class and the URL, without its secrets.
    open override var description: String { "<\(type(of: self)) \(value.description)>" }

    // MARK: Copying, comparing, archiving

    /// Returns the same object, or an immutable copy of a mutable request.
    open override func copy() -> Any { copy(with: nil) }
    /// Returns the same object, or an immutable copy of a mutable request.
    open func copy(with zone: NSZone? = nil) -> Any { self }
    /// Returns an independent ``NSMutableURLRequest``.
    open override func mutableCopy() -> Any { mutableCopy(with: nil) }
    /// Returns an independent ``NSMutableURLRequest``.
    open func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableURLRequest(value) }

    open override func isEqual(_ object: Any?) -> Bool {
        if let other = object as? NSURLRequest { return value == other.value }
        return (object as? URLRequest).map { value == $0 } ?? false
    }

    open override var hash: Int { value.hashValue }

    open class var supportsSecureCoding: Bool { true }

    public required init?(coder aDecoder: NSCoder) {
        guard aDecoder.allowsKeyedCoding else { return nil }
        value = URLRequest(decoding: aDecoder)
    }

    /// Encodes the request, without a body that is a stream.
    open func encode(with aCoder: NSCoder) {
        guard aCoder.allowsKeyedCoding else { return }
        value.encode(to: aCoder)
    }
}

/// Unavailable: a mutable subclass could be changed on one thread while another sends it. Send the value type,
/// ``URLRequest``.
@available(*, unavailable)
extension NSURLRequest: Sendable {}

/// A mutable request object. Tasks and other consumers copy it, so later changes do not affect them.
open class NSMutableURLRequest: NSURLRequest {
    public required init?(coder aDecoder: NSCoder) { super.init(coder: aDecoder) }

    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
    }

    public override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    override init(_ value: URLRequest) { super.init(value) }

    /// Returns an immutable ``NSURLRequest``.
    open override func copy() -> Any { copy(with: nil) }
    /// Returns an immutable ``NSURLRequest``.
    open override func copy(with zone: NSZone? = nil) -> Any { NSURLRequest(value) }

    open override var url: URL? {
        get { value.url }
        set { value.url = newValue }
    }
    open override var mainDocumentURL: URL? {
        get { value.mainDocumentURL }
        set { value.mainDocumentURL = newValue }
    }
    open override var httpMethod: String? {
        get { value.httpMethod }
        set { value.httpMethod = newValue }
    }
    open override var cachePolicy: NSURLRequest.CachePolicy {
        get { value.cachePolicy }
        set { value.cachePolicy = newValue }
    }
    open override var timeoutInterval: TimeInterval {
        get { value.timeoutInterval }
        set { value.timeoutInterval = newValue }
    }
    open override var allHTTPHeaderFields: [String: String]? {
        get { value.allHTTPHeaderFields }
        set { value.allHTTPHeaderFields = newValue }
    }
    /// Sets a field, replacing one with the same name; `nil` removes it.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.value.setValue(value, forHTTPHeaderField: field)
    }
    /// Appends to the value of a field, after a comma.
    open func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.value.addValue(value, forHTTPHeaderField: field)
    }
    open override var httpBody: Data? {
        get { value.httpBody }
        set { value.httpBody = newValue }
    }
    open override var httpBodyStream: InputStream? {
        get { value.httpBodyStream }
        set { value.httpBodyStream = newValue }
    }
    open override var networkServiceType: NSURLRequest.NetworkServiceType {
        get { value.networkServiceType }
        set { value.networkServiceType = newValue }
    }
    open override var allowsCellularAccess: Bool {
        get { value.allowsCellularAccess }
        set { value.allowsCellularAccess = newValue }
    }
    open override var allowsExpensiveNetworkAccess: Bool {
        get { value.allowsExpensiveNetworkAccess }
        set { value.allowsExpensiveNetworkAccess = newValue }
    }
    open override var allowsConstrainedNetworkAccess: Bool {
        get { value.allowsConstrainedNetworkAccess }
        set { value.allowsConstrainedNetworkAccess = newValue }
    }
    open override var httpShouldHandleCookies: Bool {
        get { value.httpShouldHandleCookies }
        set { value.httpShouldHandleCookies = newValue }
    }
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 multiplexes them")
    open override var httpShouldUsePipelining: Bool {
        get { value.httpShouldUsePipelining }
        set { value.httpShouldUsePipelining = newValue }
    }
}
