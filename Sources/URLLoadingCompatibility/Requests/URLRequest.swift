// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// A request of the classic API, as a value. A task works on its own copy.
///
/// ```swift
/// var request = URLRequest(url: url, timeoutInterval: 10)
/// request.httpMethod = "POST"
/// request.setValue("application/json", forHTTPHeaderField: "Content-Type")
/// request.httpBody = json
/// ```
public struct URLRequest: Equatable, Hashable, Sendable {
    /// The uses of the cache.
    public typealias CachePolicy = NSURLRequest.CachePolicy
    /// The purposes of traffic.
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType

    /// A single reference, so that copying a request costs one reference count.
    private var storage: Storage

    /// Creates a GET request.
    /// - Parameters:
    ///   - url: the URL; a relative URL is resolved, so ``url`` is the absolute URL.
    ///   - timeoutInterval: see ``timeoutInterval``; 60 leaves it to the session.
    public init(
        url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
    ) {
        storage = Storage()
        storage.url = url.absoluteURL
        storage.cachePolicy = cachePolicy
        if timeoutInterval != Storage.usualTimeout { storage.timeout = timeoutInterval }
    }

    /// Creates a request without a URL, to be filled in.
    init() { storage = Storage() }

    /// The URL to load. A task whose request has no URL, or one without a scheme, fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { storage.url }
        set { mutable.url = newValue }
    }

    /// The cache policy. With ``NSURLRequest/CachePolicy/useProtocolCachePolicy`` the session's policy applies.
    public var cachePolicy: CachePolicy {
        get { storage.cachePolicy }
        set { mutable.cachePolicy = newValue }
    }

    /// The idle timeout in seconds: how long the peer may be silent before the load fails with `URLError.timedOut`.
    /// Once set, it takes precedence over the session's ``URLSessionConfiguration/timeoutIntervalForRequest``. Zero,
    /// negative or infinite values mean no limit.
    public var timeoutInterval: TimeInterval {
        get { storage.timeout ?? Storage.usualTimeout }
        set { mutable.timeout = newValue }
    }

    /// The timeout set on this request; `nil` leaves it to the session.
    var ownTimeout: TimeInterval? { storage.timeout }

    /// The URL of the document to which the request belongs; it decides which cookies are first-party. `nil` for a
    /// request of its own.
    public var mainDocumentURL: URL? {
        get { storage.mainDocumentURL }
        set { mutable.mainDocumentURL = newValue }
    }

    /// The purpose of the traffic: the packets of the connection are marked accordingly, so that networks can
    /// prioritize them. `.default` uses the setting of the session's configuration.
    public var networkServiceType: NetworkServiceType {
        get { storage.serviceType }
        set { mutable.serviceType = newValue }
    }

    /// Whether a mobile network may be used.
    public var allowsCellularAccess: Bool {
        get { storage.allowsCellular }
        set { mutable.allowsCellular = newValue }
    }

    /// Whether a metered (expensive) network may be used.
    public var allowsExpensiveNetworkAccess: Bool {
        get { storage.allowsExpensive }
        set { mutable.allowsExpensive = newValue }
    }

    /// Whether a network may be used on which the user wants little traffic (constrained).
    public var allowsConstrainedNetworkAccess: Bool {
        get { storage.allowsConstrained }
        set { mutable.allowsConstrained = newValue }
    }

    // MARK: Method, fields, body

    /// The request method. `nil` resets it to GET; the standard methods are accepted in any case.
    public var httpMethod: String? {
        get { storage.method }
        set { mutable.method = Self.normalized(newValue) }
    }

    private static func normalized(_ method: String?) -> String {
        guard let method else { return "GET" }
        let upper = method.uppercased()
        return ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"].contains(upper) ? upper : method
    }

    /// The request body. A POST with a non-empty body and no Content-Type gets `application/x-www-form-urlencoded`.
    /// Setting it removes ``httpBodyStream``.
    public var httpBody: Data? {
        get { storage.body }
        set {
            let storage = mutable
            storage.body = newValue
            if newValue != nil { storage.stream = nil }
        }
    }

    /// The stream from which the body is read, once. If the body must be sent again, the delegate is asked for another
    /// stream (`needNewBodyStream`). Setting it removes ``httpBody``.
    public var httpBodyStream: InputStream? {
        get { storage.stream }
        set {
            let storage = mutable
            storage.stream = newValue
            if newValue != nil { storage.body = nil }
        }
    }

    /// The fields of the request, with their names as set here or by ``setValue(_:forHTTPHeaderField:)``. Of names that
    /// differ only in case, one is kept. `nil` if none was set.
    public var allHTTPHeaderFields: [String: String]? {
        get { storage.fields }
        set {
            mutable.fields = newValue.map { _ in [:] }
            for (field, value) in (newValue ?? [:]).sorted(by: { $0.key < $1.key }) {
                put(value, under: field, insteadOf: name(like: field))
            }
        }
    }

    /// Returns the value of a field; the name is case-insensitive.
    public func value(forHTTPHeaderField field: String) -> String? {
        name(like: field).flatMap { storage.fields?[$0] }
    }

    /// Sets a field, replacing one with the same name; `nil` removes it.
    ///
    /// In ``allHTTPHeaderFields`` a standard field has its usual spelling, such as `Content-Type`, regardless of the
    /// case used here; any other name keeps the case in which it was first set.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        let present = name(like: field)
        guard let value else { return present.map { mutable.fields?[$0] = nil } ?? () }
        put(value, under: RequestFieldNames.canonicalSpelling(of: field) ?? present ?? field, insteadOf: present)
    }

    private mutating func put(_ value: String, under name: String, insteadOf present: String?) {
        let storage = mutable
        if let present, present != name { storage.fields?[present] = nil }
        storage.fields = storage.fields ?? [:]
        storage.fields?[name] = value
    }

    /// Appends to the value of a field, after a comma.
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

    /// Whether the session's cookies are sent with the request, and those of its response are stored.
    public var httpShouldHandleCookies: Bool {
        get { storage.handlesCookies }
        set { mutable.handlesCookies = newValue }
    }

    /// Without effect: requests are never pipelined.
    @available(*, deprecated, message: "Requests are never pipelined; HTTP/2 multiplexes them")
    public var httpShouldUsePipelining: Bool {
        get { storage.pipelines }
        set { mutable.pipelines = newValue }
    }

    /// The properties that a ``URLProtocol`` attached.
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

    /// Returns the core's request for a session's policy. The result is cached until the request changes, because
    /// converting the URL dominates its cost.
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

    // Unchecked: written only through a unique reference. Streams and properties belong to the program, and
    // Foundation's `URLRequest` is `Sendable` with them, too.
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
    /// Returns whether two requests have equal properties.
    public static func == (lhs: URLRequest, rhs: URLRequest) -> Bool { lhs.storage.isSame(as: rhs.storage) }

    /// Hashes the properties that usually distinguish requests.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(httpMethod)
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL, without its secrets.
    public var description: String { url?.redactedText ?? "url: nil" }
    /// The URL, without its secrets.
    public var debugDescription: String { description }
    /// The properties for `dump` and debuggers: without passwords and tokens in URLs, and without field values.
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
