public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// A request of the classic shape: a value. A task works on its own copy.
///
/// ```swift
/// var request = URLRequest(url: url, timeoutInterval: 10)
/// request.httpMethod = "POST"
/// request.setValue("application/json", forHTTPHeaderField: "Content-Type")
/// request.httpBody = json
/// ```
public struct URLRequest: Equatable, Hashable, Sendable {
    public typealias CachePolicy = NSURLRequest.CachePolicy
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType

    /// One reference, so that a request is passed around at the cost of one count.
    private var storage: Storage

    /// - Parameters:
    ///   - url: resolved against its base URL, if it has one: ``url`` is the absolute URL.
    ///   - timeoutInterval: see ``timeoutInterval``; 60 leaves it to the session.
    public init(
        url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
    ) {
        storage = Storage()
        storage.url = url.absoluteURL
        storage.cachePolicy = cachePolicy
        if timeoutInterval != Storage.usualTimeout { storage.timeout = timeoutInterval }
    }

    /// One without a URL, to be filled in.
    init() { storage = Storage() }

    /// What to load. A task whose request has none, or one without a scheme, fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { storage.url }
        set { mutable.url = newValue }
    }

    /// If this is ``NSURLRequest/CachePolicy/useProtocolCachePolicy``, the session's own policy holds.
    public var cachePolicy: CachePolicy {
        get { storage.cachePolicy }
        set { mutable.cachePolicy = newValue }
    }

    /// How long the peer may be silent, in seconds, before the load fails with `URLError.timedOut`. Once set,
    /// it goes before the session's
    /// ``URLSessionConfiguration/timeoutIntervalForRequest``. Zero, less, or infinity: no limit.
    public var timeoutInterval: TimeInterval {
        get { storage.timeout ?? Storage.usualTimeout }
        set { mutable.timeout = newValue }
    }

    /// What was asked for here; `nil` leaves it to the session.
    var ownTimeout: TimeInterval? { storage.timeout }

    /// The page this is a part of: cookies are sent and taken by whose it is. `nil` for a request by itself.
    public var mainDocumentURL: URL? {
        get { storage.mainDocumentURL }
        set { mutable.mainDocumentURL = newValue }
    }

    /// What it is for: the packets of its connection are marked with it, so that networks may order them. ``NetworkServiceType/default``
    /// is what the session's configuration says.
    public var networkServiceType: NetworkServiceType {
        get { storage.serviceType }
        set { mutable.serviceType = newValue }
    }

    /// Whether it may go over a mobile network.
    public var allowsCellularAccess: Bool {
        get { storage.allowsCellular }
        set { mutable.allowsCellular = newValue }
    }

    /// Whether it may go over a network that costs by volume.
    public var allowsExpensiveNetworkAccess: Bool {
        get { storage.allowsExpensive }
        set { mutable.allowsExpensive = newValue }
    }

    /// Whether it may go over a network on which the user wants little traffic.
    public var allowsConstrainedNetworkAccess: Bool {
        get { storage.allowsConstrained }
        set { mutable.allowsConstrained = newValue }
    }

    // MARK: What is sent

    /// The request method. `nil` makes it GET; the usual methods are taken in any case.
    public var httpMethod: String? {
        get { storage.method }
        set { mutable.method = Self.normalized(newValue) }
    }

    private static func normalized(_ method: String?) -> String {
        guard let method else { return "GET" }
        let upper = method.uppercased()
        return ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"].contains(upper) ? upper : method
    }

    /// What is sent after the head. A POST with a body that is not empty and no Content-Type gets
    /// `application/x-www-form-urlencoded`. Setting it removes ``httpBodyStream``.
    public var httpBody: Data? {
        get { storage.body }
        set {
            let storage = mutable
            storage.body = newValue
            if newValue != nil { storage.stream = nil }
        }
    }

    /// Where the body is read from: once, so that a body which must be sent again is asked of the delegate
    /// (`needNewBodyStream`). Setting it removes ``httpBody``.
    public var httpBodyStream: InputStream? {
        get { storage.stream }
        set {
            let storage = mutable
            storage.stream = newValue
            if newValue != nil { storage.body = nil }
        }
    }

    /// The fields of the request, their names as they are given here or by ``setValue(_:forHTTPHeaderField:)``; of two whose
    /// names differ only in case, one is kept. `nil` if none was set.
    public var allHTTPHeaderFields: [String: String]? {
        get { storage.fields }
        set {
            mutable.fields = newValue.map { _ in [:] }
            for (field, value) in (newValue ?? [:]).sorted(by: { $0.key < $1.key }) {
                put(value, under: field, insteadOf: name(like: field))
            }
        }
    }

    /// The value of a field, whatever the case of its name.
    public func value(forHTTPHeaderField field: String) -> String? {
        name(like: field).flatMap { storage.fields?[$0] }
    }

    /// Sets a field in place of one of the same name; `nil` removes it.
    ///
    /// In ``allHTTPHeaderFields`` a name of HTTP's own is written as usual, such as `Content-Type`, whatever its case here;
    /// any other name keeps the case in which it was set first.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        let present = name(like: field)
        guard let value else { return present.map { mutable.fields?[$0] = nil } ?? () }
        put(value, under: RequestFieldNames.usualSpelling(of: field) ?? present ?? field, insteadOf: present)
    }

    private mutating func put(_ value: String, under name: String, insteadOf present: String?) {
        let storage = mutable
        if let present, present != name { storage.fields?[present] = nil }
        storage.fields = storage.fields ?? [:]
        storage.fields?[name] = value
    }

    /// Adds to the value of a field, behind a comma.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        guard let name = name(like: field), let present = storage.fields?[name] else {
            return setValue(value, forHTTPHeaderField: field)
        }
        mutable.fields?[name] = present + "," + value
    }

    private func name(like field: String) -> String? {
        guard let fields = storage.fields, !fields.isEmpty else { return nil }
        return fields[field] != nil ? field : fields.keys.first { $0.lowercased() == field.lowercased() }
    }

    /// Whether the session's cookies go with it, and those of its response are kept.
    public var httpShouldHandleCookies: Bool {
        get { storage.handlesCookies }
        set { mutable.handlesCookies = newValue }
    }

    /// Can be set and read and has no effect: requests are never pipelined.
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 has what it wanted")
    public var httpShouldUsePipelining: Bool {
        get { storage.pipelines }
        set { mutable.pipelines = newValue }
    }

    /// What a ``URLProtocol`` attached to it.
    var properties: [String: Any] {
        get { storage.properties }
        set {
            nonisolated(unsafe) let newValue = newValue
            mutable.properties = newValue
        }
    }

    // MARK: Storage

    private var mutable: Storage {
        mutating get {
            if !isKnownUniquelyReferenced(&storage) {
                storage = Storage(storage)
            } else {
                storage.made.withLock { $0 = nil }
            }
            return storage
        }
    }

    /// As the core has it, under a session's policy; made once, as long as nothing is changed: most of it is its URL.
    func made(_ policy: CachePolicy, _ make: () -> Result<Request, LoadError>) -> Result<Request, LoadError> {
        if let known = storage.made.withLock({ $0 }), known.policy == policy { return .success(known.request) }
        let made = make()
        if case .success(let request) = made { storage.made.withLock { $0 = Made(policy: policy, request: request) } }
        return made
    }

    private struct Made: Sendable {
        let policy: CachePolicy
        let request: Request
    }

    // Unchecked: written by a request that holds the one reference to it. Streams and properties are the program's, and
    // `URLRequest` is `Sendable` in Foundation, too.
    private final class Storage: @unchecked Sendable {
        static let usualTimeout: TimeInterval = 60

        var url: URL?
        var cachePolicy = CachePolicy.useProtocolCachePolicy
        var timeout: TimeInterval?
        var mainDocumentURL: URL?
        var serviceType = NetworkServiceType.default
        var allowsCellular = true
        var allowsExpensive = true
        var allowsConstrained = true
        var method = "GET"
        var fields: [String: String]?
        var body: Data?
        var stream: InputStream?
        var handlesCookies = true
        var pipelines = false
        var properties: [String: Any] = [:]
        let made = Lock<Made?>(nil)

        init() {}

        init(_ other: Storage) {
            url = other.url
            cachePolicy = other.cachePolicy
            timeout = other.timeout
            mainDocumentURL = other.mainDocumentURL
            serviceType = other.serviceType
            allowsCellular = other.allowsCellular
            allowsExpensive = other.allowsExpensive
            allowsConstrained = other.allowsConstrained
            method = other.method
            fields = other.fields
            body = other.body
            stream = other.stream
            handlesCookies = other.handlesCookies
            pipelines = other.pipelines
            properties = other.properties
        }

        func isSame(as other: Storage) -> Bool {
            if self === other { return true }
            guard url == other.url, method == other.method, fields == other.fields, body == other.body else {
                return false
            }
            guard stream === other.stream, mainDocumentURL == other.mainDocumentURL else { return false }
            return timeout ?? Self.usualTimeout == other.timeout ?? Self.usualTimeout
                && cachePolicy == other.cachePolicy
                && serviceType == other.serviceType && allowsCellular == other.allowsCellular
                && allowsExpensive == other.allowsExpensive && allowsConstrained == other.allowsConstrained
                && handlesCookies == other.handlesCookies && pipelines == other.pipelines
        }
    }
}

extension URLRequest {
    /// Whether they ask for the same in the same way.
    public static func == (lhs: URLRequest, rhs: URLRequest) -> Bool { lhs.storage.isSame(as: rhs.storage) }

    /// Feeds what mostly tells requests apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(httpMethod)
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL.
    public var description: String { url?.redactedText ?? "url: nil" }
    /// The URL.
    public var debugDescription: String { description }
    /// The members, for `dump` and debuggers: without passwords and tokens of URLs, and without values of fields.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", url?.redactedText as Any), ("cachePolicy", cachePolicy.rawValue),
            ("timeoutInterval", timeoutInterval),
            ("mainDocumentURL", mainDocumentURL?.redactedText as Any), ("networkServiceType", networkServiceType),
            ("allowsCellularAccess", allowsCellularAccess), ("httpMethod", httpMethod as Any),
            ("allHTTPHeaderFields", allHTTPHeaderFields?.keys.sorted() as Any), ("httpBody", httpBody as Any),
            ("httpBodyStream", httpBodyStream as Any), ("httpShouldHandleCookies", httpShouldHandleCookies),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
