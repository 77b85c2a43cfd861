// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The receiver of a ``URLProtocol``'s events. All methods may be called from any thread; calls after the end of the
/// load have no effect.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// The load was redirected to another request, which is offered to the classes anew; the protocol object is
    /// stopped.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)
    /// The cached response is valid: it is the result, and the load ends.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)
    /// The response was received; only the first call counts. The program receives the same object.
    /// - Parameter policy: whether the session's ``URLCache`` may store the response, for GETs of http and https.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    /// A piece of the body was loaded. Within ``URLProtocol/startLoading()`` the call blocks while too many bytes are
    /// unread. On other threads it does not block, and exceeding the session's limit for collected bodies ends the
    /// load.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)
    /// The body is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)
    /// The load has failed; the task fails with this error.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
    /// A challenge was received. The delegate is asked; the challenge's sender receives its answer.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)
    /// The challenge was withdrawn: the sender does not receive an answer.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
