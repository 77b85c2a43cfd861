// SPDX-License-Identifier: Apache-2.0

// In this folder: the program's `URLProtocol` classes as handlers of the core

public import Foundation

/// Loads requests in place of the library: for a scheme of its own, or as a stub for http and https. A subclass
/// overrides ``canInit(with:)-(URLRequest)``, ``canonicalRequest(for:)``, ``startLoading()`` and ``stopLoading()``.
///
/// ```swift
/// final class Greeting: URLProtocol {
///     override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "greet" }
///     override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
///     override func startLoading() {
///         guard let url = request.url else { return }
///         let response = URLResponse(
///             url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: nil)
///         client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
///         client?.urlProtocol(self, didLoad: Data("hello".utf8))
///         client?.urlProtocolDidFinishLoading(self)
///     }
///     override func stopLoading() {}
/// }
/// configuration.protocolClasses = [Greeting.self]
/// ```
/// The classes of the session's configuration are asked first, in order, then the registered ones, latest first; the
/// first class that accepts the request loads it. Every request of a redirect chain is offered anew. An object is
/// created, started and stopped on a serial queue of its own, where it may block; it is stopped once, when the load
/// ends for any reason.
open class URLProtocol: NSObject {
    /// The receiver of the loaded response and body.
    open var client: (any URLProtocolClient)?
    /// The task for which the object loads.
    open var task: URLSessionTask?
    private let asked: URLRequest
    private let cached: CachedURLResponse?

    /// Creates an object for a request. The library calls it when the class can handle a request.
    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        (asked, cached, self.client) = (request, cachedResponse, client)
    }

    /// Creates an object for a task. The library calls it when the class can handle a task.
    public required convenience init(
        task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        let request = ProtocolRun.asked ?? task.currentRequest ?? task.originalRequest ?? URLRequest()
        self.init(request: request, cachedResponse: cachedResponse, client: client)
        self.task = task
    }

    /// The request to load, in its canonical form, with the session's additional fields. A body from a file or a stream
    /// is its `httpBodyStream`.
    open var request: URLRequest { asked }
    /// The response stored for the request in the session's cache.
    open var cachedResponse: CachedURLResponse? { cached }

    // MARK: Answers of a subclass

    /// Returns whether this class loads a request. Called more than once for each request, so it must be fast.
    open class func canInit(with request: URLRequest) -> Bool { false }
    /// Returns whether this class loads a task; by default the answer for its request.
    open class func canInit(with task: URLSessionTask) -> Bool {
        (ProtocolRun.asked ?? task.currentRequest).map { canInit(with: $0) } ?? false
    }
    /// Returns the canonical form of a request; by default unchanged. The classes are asked again about the canonical
    /// request.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    /// Returns whether the cached response to one request answers another. By default if the requests are equal; for
    /// the program's own use.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        canonicalRequest(for: a) == canonicalRequest(for: b)
    }
    /// Begins the load and reports its events to the client. By default the load fails.
    open func startLoading() { client?.urlProtocol(self, didFailWithError: URLError.described(.unsupportedURL)) }
    /// Ends the load: no further events are needed.
    open func stopLoading() {}

    // MARK: Properties

    /// Returns a property attached to a request.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }
    /// Attaches a property to a request. It is kept in copies and in requests created by redirects, and never sent.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = value
    }
    /// Removes a property of a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = nil
    }

    // MARK: Registration

    /// Registers a class, which all sessions of this API ask before the classes registered earlier. Applies to tasks
    /// created from now on.
    /// - Returns: `false` if the class is no subclass of `URLProtocol`.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let kind = protocolClass as? URLProtocol.Type else { return false }
        ProtocolClasses.register(kind)
        return true
    }

    /// Unregisters a class: it is not asked any more. Its running loads continue.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        if let kind = protocolClass as? URLProtocol.Type { ProtocolClasses.unregister(kind) }
    }
}
