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

    /// The same, async: a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The answer to `didReceive response` was ``URLSession/ResponseDisposition/becomeDownload``: what follows, the delegate
    /// hears of the download task.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// The answer to `didReceive response` was ``URLSession/ResponseDisposition/becomeStream``: the last call about the data
    /// task. The stream runs from when this returns, and has what was received behind the head.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

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

    /// The same, async: a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        AsyncForm.answer(self, .response, dataTask.lane) {
            await self.urlSession(session, dataTask: dataTask, didReceive: response)
        } then: {
            completionHandler($0)
        } otherwise: {
            guard let next = self.next(in: session, dataTask) as? any URLSessionDataDelegate else {
                return completionHandler(.allow)
            }
            next.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        if AsyncForm.isTried(self, .response) { return .allow }
        return await withCheckedContinuation { continuation in
            urlSession(session, dataTask: dataTask, didReceive: response) { continuation.resume(returning: $0) }
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        nextDataDelegate(session, downloadTask)?.urlSession(session, dataTask: dataTask, didBecome: downloadTask)
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
    ) {
        nextDataDelegate(session, dataTask)?.urlSession(session, dataTask: dataTask, didBecome: streamTask)
    }

    private func nextDataDelegate(_ session: URLSession, _ task: URLSessionTask) -> (any URLSessionDataDelegate)? {
        next(in: session, task) as? any URLSessionDataDelegate
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        AsyncForm.answer(self, .cachedResponse, dataTask.lane) {
            await self.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse)
        } then: {
            completionHandler($0)
        } otherwise: {
            guard let next = self.next(in: session, dataTask) as? any URLSessionDataDelegate else {
                IndifferentDelegates.note(self)
                return completionHandler(proposedResponse)
            }
            next.urlSession(
                session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        if AsyncForm.isTried(self, .cachedResponse) { return nil }
        return await withCheckedContinuation { continuation in
            urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) {
                continuation.resume(returning: $0)
            }
        }
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        (next(in: session, dataTask) as? any URLSessionDataDelegate)?.urlSession(
            session, dataTask: dataTask, didReceive: data)
    }
}
