public import Foundation

/// Hears of the responses and bodies of data and upload tasks; not of those with a completion handler.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The response has come. The body waits for the answer: no more of it is read than came with its
    /// first piece, and none delivered. By default it is allowed.
    /// - Parameter completionHandler: to be called once, from any thread, now or later. If it is dropped
    ///   without a call the task is cancelled, and ``URLSession/misuseHandler`` told.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// A piece of the body, decoded. All pieces in their order are the body. They are not kept: at most
    /// 1 MiB waits for a slow delegate, then the peer does.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// All of a body is here, and HTTP allows to keep it: what is to be kept. By default the proposed response. Asked of
    /// what fits into the session's ``URLCache`` as one entry, after its last piece was delivered.
    /// - Parameter completionHandler: to be called once, from any thread, now or later: with the proposed response, with
    ///   another (what it is found by stays), or with `nil` to keep nothing. If it is dropped without a call the task is
    ///   cancelled, and ``URLSession/misuseHandler`` told.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let next = next(in: session, dataTask) as? any URLSessionDataDelegate else { return completionHandler(.allow) }
        next.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let next = next(in: session, dataTask) as? any URLSessionDataDelegate else {
            IndifferentDelegates.note(self)
            return completionHandler(proposedResponse)
        }
        next.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        (next(in: session, dataTask) as? any URLSessionDataDelegate)?.urlSession(session, dataTask: dataTask, didReceive: data)
    }
}
