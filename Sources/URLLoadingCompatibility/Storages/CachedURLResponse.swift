// SPDX-License-Identifier: Apache-2.0

// In this folder: cookies, cache and credentials of the classic API, as views of the core's stores

public import Foundation
import URLLoading
import URLLoadingWire

/// A response with its body, as stored by a ``URLCache``. Immutable.
///
/// ```swift
/// completionHandler(CachedURLResponse(
///     response: proposed.response, data: proposed.data, userInfo: ["seen": Date()],
///     storagePolicy: .allowedInMemoryOnly))
/// ```
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private let answered: URLResponse
    private let body: Data
    nonisolated(unsafe) private let information: [AnyHashable: Any]?
    final let policy: URLCache.StoragePolicy
    /// The core's cache entry that this object presents, if there is one.
    private let entry: CachedResponse?

    /// Creates a response that may be stored in memory and on disk.
    public init(response: URLResponse, data: Data) {
        (answered, body, information, policy, entry) = (response, data, nil, .allowed, nil)
    }

    /// Creates an entry to store.
    /// - Parameters:
    ///   - data: the whole body, content-decoded.
    ///   - userInfo: returned with the stored response. Values that are no property list (strings as keys; strings,
    ///     numbers, dates, data, arrays, dictionaries) are not stored.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        (answered, body, information, policy, entry) = (response, data, userInfo, storagePolicy, nil)
    }

    init(_ entry: CachedResponse) {
        let envelope = entry.userInfo.flatMap { Envelope($0) }
        answered =
            envelope?.response(entry.response.url) ?? URLResponse.make(entry.response.withStatedLength, to: "GET")
        (body, information, self.entry) = (entry.data, envelope?.userInfo, entry)
        policy = URLCache.StoragePolicy(entry.storagePolicy)
    }

    /// Returns the core's form of the response.
    final func core(for url: URL) -> CachedResponse {
        if let entry { return entry }
        return CachedResponse(
            response: answered.core(url), data: body, userInfo: Envelope(answered, information).data,
            storagePolicy: policy.core)
    }

    /// The stored response.
    open var response: URLResponse { answered }
    /// The stored body.
    open var data: Data { body }
    /// Values of the program, stored with the response as a property list.
    open var userInfo: [AnyHashable: Any]? { information }
    /// Where the response may be stored.
    open var storagePolicy: URLCache.StoragePolicy { policy }

    // MARK: Copying, comparing, archiving

    /// Returns the same object: a cached response is immutable.
    open override func copy() -> Any { self }
    /// Returns the same object: a cached response is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ value: Any?) -> Bool {
        guard let other = value as? CachedURLResponse else { return false }
        return response.isEqual(other.response) && data == other.data && storagePolicy == other.storagePolicy
            && (userInfo as NSDictionary?) == (other.userInfo as NSDictionary?)
    }

    open override var hash: Int { data.hashValue ^ response.hash }

    public static var supportsSecureCoding: Bool { true }

    public required init?(coder aDecoder: NSCoder) {
        guard
            let response = aDecoder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "response")
                as? URLResponse,
            let data = aDecoder.decodeObject(of: NSData.self, forKey: "data")
        else { return nil }
        answered = response
        body = Data(referencing: data)
        let envelope = aDecoder.decodeObject(of: NSData.self, forKey: "userInfo").flatMap {
            Envelope(Data(referencing: $0))
        }
        information = envelope?.userInfo
        policy =
            UInt(exactly: aDecoder.decodeInteger(forKey: "policy")).flatMap { URLCache.StoragePolicy(rawValue: $0) }
            ?? .allowed
        entry = nil
    }

    open func encode(with aCoder: NSCoder) {
        aCoder.encode(answered, forKey: "response")
        aCoder.encode(body as NSData, forKey: "data")
        aCoder.encode(Envelope(nil, information).data.map { $0 as NSData }, forKey: "userInfo")
        aCoder.encode(Int(policy.rawValue), forKey: "policy")
    }
}

/// The data of an entry that the core stores without interpreting it: the program's `userInfo`, and the properties of a
/// response that is not HTTP.
private struct Envelope {
    let userInfo: [AnyHashable: Any]?
    private let plain: [String: Any]?
    private static let info = "userInfo", response = "response"

    init(_ response: URLResponse?, _ userInfo: [AnyHashable: Any]?) {
        var kept: [String: Any] = [:]
        for (key, value) in userInfo ?? [:] {
            guard let name = key.base as? String, PropertyListSerialization.propertyList(value, isValidFor: .binary)
            else { continue }
            kept[name] = value
        }
        self.userInfo = userInfo == nil ? nil : kept
        guard let response, !(response is HTTPURLResponse) else {
            plain = nil
            return
        }
        var plain: [String: Any] = ["length": response.expectedContentLength]
        plain["type"] = response.mimeType
        plain["encoding"] = response.textEncodingName
        self.plain = plain
    }

    init?(_ data: Data) {
        guard let all = (try? PropertyListSerialization.propertyList(from: data, format: nil)) as? [String: Any] else {
            return nil
        }
        userInfo = all[Self.info] as? [String: Any]
        plain = all[Self.response] as? [String: Any]
    }

    var data: Data? {
        var all: [String: Any] = [:]
        all[Self.info] = userInfo
        all[Self.response] = plain
        return all.isEmpty
            ? nil : try? PropertyListSerialization.data(fromPropertyList: all, format: .binary, options: 0)
    }

    func response(_ url: URL) -> URLResponse? {
        guard let plain else { return nil }
        let length = (plain["length"] as? NSNumber)?.intValue ?? -1
        return URLResponse(
            url: url, mimeType: plain["type"] as? String, expectedContentLength: length,
            textEncodingName: plain["encoding"] as? String)
    }
}

extension Response {
    /// Returns the response with the content length that it stated when it was stored; the cache otherwise knows the
    /// actual length of every body. Content-Length counts the bytes before content decoding.
    fileprivate var withStatedLength: Response {
        guard let http else { return self }
        let stated = http.headers.contains(.contentEncoding) ? nil : http.headers.contentLength
        guard stated != expectedLength else { return self }
        var response = Response(url: url, expectedLength: stated, http: http)
        response.properties = properties
        response.storagePolicy = storagePolicy
        return response
    }
}

extension URLResponse {
    /// Returns the core's form of the response. A response that is not HTTP counts as status 200.
    final func core(_ url: URL) -> Response {
        if let loaded { return loaded }
        let length = expectedContentLength >= 0 ? expectedContentLength : nil
        guard let http = self as? HTTPURLResponse else {
            var headers = Headers()
            if let mimeType {
                headers[.contentType] = textEncodingName.map { "\(mimeType); charset=\($0)" } ?? mimeType
            }
            return Response(url: self.url ?? url, expectedLength: length, http: HTTPHead(status: .ok, headers: headers))
        }
        let head = HTTPHead(status: Status(http.statusCode) ?? .ok, headers: http.fields)
        return Response(url: self.url ?? url, expectedLength: length, http: head)
    }
}
