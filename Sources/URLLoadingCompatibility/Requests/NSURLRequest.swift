public import Foundation
import URLLoading

/// A request as an object that does not change; see ``URLRequest``, which it holds.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying {
    /// Whether a stored response may answer. The numbers are those of FoundationNetworking, which are not Apple's.
    public enum CachePolicy: UInt, Sendable {
        /// As HTTP says (RFC 9111).
        case useProtocolCachePolicy = 0
        /// Never a stored response.
        case reloadIgnoringLocalCacheData = 1
        /// The same, and caches on the way are asked to look at the origin.
        case reloadIgnoringLocalAndRemoteCacheData = 2
        /// A stored response whatever its age; the network if there is none.
        case returnCacheDataElseLoad = 3
        /// A stored response whatever its age, or `URLError.resourceUnavailable`: no traffic.
        case returnCacheDataDontLoad = 4
        /// A stored response if the origin says that it still holds.
        case reloadRevalidatingCacheData = 5
        /// The older name of ``reloadIgnoringLocalCacheData``.
        public static var reloadIgnoringCacheData: NSURLRequest.CachePolicy { .reloadIgnoringLocalCacheData }
    }

    /// What a request is for.
    public enum NetworkServiceType: UInt, Sendable {
        case `default` = 0
        /// What controls calls over IP; Apple's word for it today is `callSignaling`.
        case voip = 1
        /// The pictures of a conversation.
        case video = 2
        /// What may take as long as it takes.
        case background = 3
        /// The sound of a call.
        case voice = 4
        /// What sets up calls.
        case networkServiceTypeCallSignaling = 5
        /// Data somebody waits for.
        case responsiveData = 6
        /// Sound and pictures that are played while they come.
        case avStreaming = 8
        /// Sound and pictures that answer to somebody.
        case responsiveAV = 9
    }

    /// What it is as a value. Set by ``NSMutableURLRequest`` alone.
    final var value: URLRequest

    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
    }

    public init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        value = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    init(_ value: URLRequest) { self.value = value }

    // MARK: What it asks for

    open var url: URL? { value.url }
    open var mainDocumentURL: URL? { value.mainDocumentURL }
    open var cachePolicy: NSURLRequest.CachePolicy { value.cachePolicy }
    open var timeoutInterval: TimeInterval { value.timeoutInterval }
    open var httpMethod: String? { value.httpMethod }
    open var allHTTPHeaderFields: [String: String]? { value.allHTTPHeaderFields }
    /// The value of a field, whatever the case of its name.
    open func value(forHTTPHeaderField field: String) -> String? { value.value(forHTTPHeaderField: field) }
    open var httpBody: Data? { value.httpBody }
    open var httpBodyStream: InputStream? { value.httpBodyStream }
    open var networkServiceType: NSURLRequest.NetworkServiceType { value.networkServiceType }
    open var allowsCellularAccess: Bool { value.allowsCellularAccess }
    open var allowsExpensiveNetworkAccess: Bool { value.allowsExpensiveNetworkAccess }
    open var allowsConstrainedNetworkAccess: Bool { value.allowsConstrainedNetworkAccess }
    open var httpShouldHandleCookies: Bool { value.httpShouldHandleCookies }
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 has what it wanted")
    open var httpShouldUsePipelining: Bool { value.httpShouldUsePipelining }

    /// The class and the URL.
    open override var description: String { "<\(type(of: self)) \(url?.redactedText ?? "-")>" }

    // MARK: Copying, comparing, archiving

    /// The same object, unless it can change.
    open override func copy() -> Any { copy(with: nil) }
    /// The same object, unless it can change.
    open func copy(with zone: NSZone? = nil) -> Any { self }
    /// An ``NSMutableURLRequest`` of its own.
    open override func mutableCopy() -> Any { mutableCopy(with: nil) }
    /// An ``NSMutableURLRequest`` of its own.
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

    /// A body that is a stream is not archived.
    open func encode(with aCoder: NSCoder) {
        guard aCoder.allowsKeyedCoding else { return }
        value.encode(to: aCoder)
    }
}

/// A request that others may change while it is sent elsewhere would be two: send the value, ``URLRequest``.
@available(*, unavailable)
extension NSURLRequest: Sendable {}

/// A request as an object that can be changed. Whoever takes one copies it: later changes reach nobody.
open class NSMutableURLRequest: NSURLRequest {
    public required init?(coder aDecoder: NSCoder) { super.init(coder: aDecoder) }

    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
    }

    public override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    override init(_ value: URLRequest) { super.init(value) }

    /// An ``NSURLRequest`` that does not change any more.
    open override func copy() -> Any { copy(with: nil) }
    /// An ``NSURLRequest`` that does not change any more.
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
    /// Sets a field in place of one of the same name; `nil` removes it.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.value.setValue(value, forHTTPHeaderField: field)
    }
    /// Adds to the value of a field, behind a comma.
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
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 has what it wanted")
    open override var httpShouldUsePipelining: Bool {
        get { value.httpShouldUsePipelining }
        set { value.httpShouldUsePipelining = newValue }
    }
}
