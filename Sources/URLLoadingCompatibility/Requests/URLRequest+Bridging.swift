// SPDX-License-Identifier: Apache-2.0

// Bridging between `URLRequest` and `NSURLRequest`: casts with `as`, and archives.

public import Foundation

extension URLRequest: ReferenceConvertible {
    public typealias ReferenceType = NSURLRequest
}

extension URLRequest: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    public static func _forceBridgeFromObjectiveC(_ request: NSURLRequest, result: inout URLRequest?) {
        result = request.value
    }

    public static func _conditionallyBridgeFromObjectiveC(_ request: NSURLRequest, result: inout URLRequest?) -> Bool {
        result = request.value
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        source?.value ?? URLRequest()
    }
}

extension NSURLRequest: _StructTypeBridgeable {
    public typealias _StructType = URLRequest
    public func _bridgeToSwift() -> URLRequest { value }
}

extension URLRequest {
    private enum Key {
        static let url = "url", policy = "cachePolicy", timeout = "timeout", document = "mainDocumentURL"
        static let service = "networkServiceType", cellular = "allowsCellular", method = "method", body = "body"
        static let names = "fieldNames", values = "fieldValues", cookies = "handlesCookies"
        static let expensive = "allowsExpensive", constrained = "allowsConstrained"
    }

    /// Decodes a request; missing or invalid values get their defaults.
    init(decoding coder: NSCoder) {
        self.init()
        func url(_ key: String) -> URL? {
            coder.decodeObject(of: NSURL.self, forKey: key).flatMap { URL(string: $0.absoluteString) }
        }
        func flag(_ key: String) -> Bool { !coder.containsValue(forKey: key) || coder.decodeBool(forKey: key) }
        self.url = url(Key.url)
        mainDocumentURL = url(Key.document)
        cachePolicy =
            UInt(exactly: coder.decodeInteger(forKey: Key.policy)).flatMap { CachePolicy(rawValue: $0) }
            ?? .useProtocolCachePolicy
        if coder.containsValue(forKey: Key.timeout) { timeoutInterval = coder.decodeDouble(forKey: Key.timeout) }
        networkServiceType =
            UInt(exactly: coder.decodeInteger(forKey: Key.service)).flatMap { NetworkServiceType(rawValue: $0) }
            ?? .default
        allowsCellularAccess = flag(Key.cellular)
        allowsExpensiveNetworkAccess = flag(Key.expensive)
        allowsConstrainedNetworkAccess = flag(Key.constrained)
        httpMethod = coder.decodeObject(of: NSString.self, forKey: Key.method).map { "\($0)" }
        httpBody = coder.decodeObject(of: NSData.self, forKey: Key.body).map { Data(referencing: $0) }
        let names = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Key.names) as? [String] ?? []
        let values = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Key.values) as? [String] ?? []
        if !names.isEmpty { allHTTPHeaderFields = Dictionary(zip(names, values)) { $1 } }
        httpShouldHandleCookies = flag(Key.cookies)
    }

    func encode(to coder: NSCoder) {
        coder.encode(url.map { $0 as NSURL }, forKey: Key.url)
        coder.encode(mainDocumentURL.map { $0 as NSURL }, forKey: Key.document)
        coder.encode(Int(cachePolicy.rawValue), forKey: Key.policy)
        if let ownTimeout { coder.encode(ownTimeout, forKey: Key.timeout) }
        coder.encode(Int(networkServiceType.rawValue), forKey: Key.service)
        coder.encode(allowsCellularAccess, forKey: Key.cellular)
        coder.encode(allowsExpensiveNetworkAccess, forKey: Key.expensive)
        coder.encode(allowsConstrainedNetworkAccess, forKey: Key.constrained)
        coder.encode(httpMethod.map { $0 as NSString }, forKey: Key.method)
        coder.encode(httpBody.map { $0 as NSData }, forKey: Key.body)
        let fields = (allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        coder.encode(fields.map(\.key) as NSArray, forKey: Key.names)
        coder.encode(fields.map(\.value) as NSArray, forKey: Key.values)
        coder.encode(httpShouldHandleCookies, forKey: Key.cookies)
    }
}
