public import Foundation
import URLLoading

/// Loads requests in the place of the library: of a scheme of its own, or of the web's, as stubs do. A subclass overrides
/// ``canInit(with:)-(URLRequest)``, ``canonicalRequest(for:)``, ``startLoading()`` and ``stopLoading()``.
///
/// ```swift
/// final class Greeting: URLProtocol {
///     override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "greet" }
///     override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
///     override func startLoading() {
///         guard let url = request.url else { return }
///         let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: nil)
///         client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
///         client?.urlProtocol(self, didLoad: Data("hello".utf8))
///         client?.urlProtocolDidFinishLoading(self)
///     }
///     override func stopLoading() {}
/// }
/// configuration.protocolClasses = [Greeting.self]
/// ```
/// Asked are the classes of the session's configuration, first to last, then those that were registered, last to first; the
/// first that can takes the request. Each request of a chain of redirects is asked for anew. An object is made, started and
/// stopped on a serial queue of its own, where it may block; it is stopped once, when the load is over, whatever ended it.
open class URLProtocol: NSObject {
    /// Who is told what was loaded.
    open var client: (any URLProtocolClient)?
    /// Whose load it is.
    open var task: URLSessionTask?
    private let asked: URLRequest
    private let cached: CachedURLResponse?

    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        (asked, cached, self.client) = (request, cachedResponse, client)
    }

    public required convenience init(
        task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
    ) {
        let request = ProtocolRun.asked ?? task.currentRequest ?? task.originalRequest ?? URLRequest()
        self.init(request: request, cachedResponse: cachedResponse, client: client)
        self.task = task
    }

    /// What is to be loaded, in its canonical form, with the session's own fields. A body that is a file or a stream is its
    /// `httpBodyStream`.
    open var request: URLRequest { asked }
    /// What the session's cache has for it.
    open var cachedResponse: CachedURLResponse? { cached }

    // MARK: What a subclass says

    /// Whether this class loads a request. Called more than once for each; must be quick.
    open class func canInit(with request: URLRequest) -> Bool { false }
    /// The same for a task; by default what is said of its request.
    open class func canInit(with task: URLSessionTask) -> Bool {
        (ProtocolRun.asked ?? task.currentRequest).map { canInit(with: $0) } ?? false
    }
    /// The request in its canonical form; by default as it is. What is loaded is asked for anew with it.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    /// Whether what is kept for one request answers another. By default if they are equal; for the program's own use.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        canonicalRequest(for: a) == canonicalRequest(for: b)
    }
    /// Begins to load, and tells the client what comes. By default it fails.
    open func startLoading() { client?.urlProtocol(self, didFailWithError: URLError.described(.unsupportedURL)) }
    /// The load is over: nothing more is wanted.
    open func stopLoading() {}

    // MARK: Properties

    /// What was attached to a request.
    open class func property(forKey key: String, in request: URLRequest) -> Any? { request.properties[key] }
    /// Attaches something to a request. It is kept in copies, and in the requests that a redirect makes of it; never sent.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = value
    }
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        request.value.properties[key] = nil
    }

    // MARK: Registration

    /// Has a class asked by all sessions of this shape, before those registered until now; tasks made from now on.
    /// - Returns: `false` if it is no subclass of this.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let kind = protocolClass as? URLProtocol.Type else { return false }
        ProtocolClasses.register(kind)
        return true
    }

    /// It is not asked any more; what it loads it goes on with.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        if let kind = protocolClass as? URLProtocol.Type { ProtocolClasses.unregister(kind) }
    }
}
