public import Foundation

/// A request of the classic shape: a value. A task works on its own copy.
///
/// ```swift
/// var request = URLRequest(url: url, timeoutInterval: 10)
/// request.httpMethod = "POST"
/// request.setValue("application/json", forHTTPHeaderField: "Content-Type")
/// request.httpBody = json
/// ```
public struct URLRequest: Equatable, Hashable, Sendable {
    /// Whether a stored response may answer. Nothing is stored yet: every policy goes to the network but
    /// ``returnCacheDataDontLoad``, which fails with `URLError.resourceUnavailable`.
    public enum CachePolicy: UInt, Sendable {
        case useProtocolCachePolicy = 0
        case reloadIgnoringLocalCacheData = 1
        case reloadIgnoringLocalAndRemoteCacheData = 2
        case returnCacheDataElseLoad = 3
        case returnCacheDataDontLoad = 4
        case reloadRevalidatingCacheData = 5
        /// The older name of ``reloadIgnoringLocalCacheData``.
        public static var reloadIgnoringCacheData: CachePolicy { .reloadIgnoringLocalCacheData }
    }

    /// What to load. A task whose request has none fails with `URLError.badURL`.
    public var url: URL?
    /// If this is ``CachePolicy/useProtocolCachePolicy``, the session's own policy holds.
    public var cachePolicy: CachePolicy

    /// - Parameter timeoutInterval: see ``timeoutInterval``; 60 leaves it to the session.
    public init(
        url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy,
        timeoutInterval: TimeInterval = 60.0
    ) {
        self.url = url
        self.cachePolicy = cachePolicy
        if timeoutInterval != Self.usualTimeout { ownTimeout = timeoutInterval }
    }

    // MARK: Time

    private static let usualTimeout: TimeInterval = 60
    /// What was asked for here; `nil` leaves it to the session.
    private(set) var ownTimeout: TimeInterval?

    /// How long the peer may be silent, in seconds, before the load fails with `URLError.timedOut`. Once set,
    /// it goes before the session's
    /// ``URLSessionConfiguration/timeoutIntervalForRequest``. Zero, less, or infinity: no limit.
    public var timeoutInterval: TimeInterval {
        get { ownTimeout ?? Self.usualTimeout }
        set { ownTimeout = newValue }
    }

    // MARK: What is sent

    private var method = "GET"

    /// The request method. `nil` makes it GET; the usual methods are taken in any case.
    public var httpMethod: String? {
        get { method }
        set { method = Self.normalized(newValue) }
    }

    private static func normalized(_ method: String?) -> String {
        guard let method else { return "GET" }
        let upper = method.uppercased()
        return ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"].contains(upper) ? upper : method
    }

    /// What is sent after the head. A POST with a body and no Content-Type gets
    /// `application/x-www-form-urlencoded`.
    public var httpBody: Data?

    private var fields: [String: String]?

    /// The fields of the request; of two whose names differ only in case, one is sent. `nil` if none was set.
    public var allHTTPHeaderFields: [String: String]? {
        get { fields }
        set {
            fields = newValue.map { _ in [:] }
            for (name, value) in (newValue ?? [:]).sorted(by: { $0.key < $1.key }) { setValue(value, forHTTPHeaderField: name) }
        }
    }

    /// The value of a field, whatever the case of its name.
    public func value(forHTTPHeaderField field: String) -> String? { name(like: field).flatMap { fields?[$0] } }

    /// Replaces a field, whatever the case of its name; `nil` removes it.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        if let name = name(like: field) { fields?[name] = nil }
        guard let value else { return }
        fields = fields ?? [:]
        fields?[field] = value
    }

    /// Adds to a field, after a comma, or sets it.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        guard let name = name(like: field), let present = fields?[name] else {
            return setValue(value, forHTTPHeaderField: field)
        }
        fields?[name] = present + "," + value
    }

    private func name(like field: String) -> String? {
        guard let fields, !fields.isEmpty else { return nil }
        return fields[field] != nil ? field : fields.keys.first { $0.lowercased() == field.lowercased() }
    }
}

extension URLRequest {
    /// Whether they ask for the same in the same way.
    public static func == (left: URLRequest, right: URLRequest) -> Bool {
        left.url == right.url && left.method == right.method && left.fields == right.fields
            && left.timeoutInterval == right.timeoutInterval && left.cachePolicy == right.cachePolicy
            && left.httpBody == right.httpBody
    }

    /// Feeds what mostly tells requests apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(method)
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL.
    public var description: String { url?.description ?? "url: nil" }
    /// The URL.
    public var debugDescription: String { description }
    /// The members, for `dump` and debuggers.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", url as Any), ("cachePolicy", cachePolicy.rawValue), ("timeoutInterval", timeoutInterval),
            ("httpMethod", method), ("allHTTPHeaderFields", fields as Any), ("httpBody", httpBody as Any),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
