public import Foundation

/// Whom a ``URLProtocol`` tells what it has loaded. All of it may be called from any thread; what comes when the load is over
/// has no effect.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// The load goes on with another request, which is asked for anew; the protocol is stopped.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)
    /// What the cache has is right: it is the answer, and the load is over.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)
    /// The response; only the first counts. It reaches the program as the object it is.
    /// - Parameter policy: whether the answer may be kept: for GETs of http and https, by the session's ``URLCache``.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    /// A piece of the body. Called within ``URLProtocol/startLoading()`` this waits while too much of it has not been read;
    /// from elsewhere it does not, and more than a session may collect at once ends the load.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)
    /// All of the body is there.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)
    /// The load has failed; the task fails with this error.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
    /// The delegate is asked; the challenge's sender is told its answer.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)
    /// Nobody wants the answer any more: the sender is not told it.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
