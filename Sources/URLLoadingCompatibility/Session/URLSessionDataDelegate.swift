// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Is notified of the responses and bodies of data and upload tasks without a completion handler.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The response was received. The body waits for the answer: only its first piece is read, and none is delivered.
    /// By default the response is allowed.
    /// - Parameter completionHandler: must be called once, from any thread, now or later. If it is dropped without a
    ///   call, the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// The async form of `didReceive response`; a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The task became a download, after the answer ``URLSession/ResponseDisposition/becomeDownload`` to `didReceive
    /// response`. Further calls are about the download task.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// The task became a stream, after the answer ``URLSession/ResponseDisposition/becomeStream`` to `didReceive
    /// response`. This is the last call about the data task. The stream runs when this method returns, and begins with
    /// the bytes received after the head.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// A piece of the body was received, decoded. All pieces in order are the body. They are not collected: at most 1
    /// MiB is buffered for a slow delegate; then the peer has to wait.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// The body is complete and HTTP allows to store the response. Returns the response to store; by default the
    /// proposed one. Called after the last piece was delivered, for responses that fit into the session's ``URLCache``.
    /// - Parameter completionHandler: must be called once, from any thread, now or later: with the proposed response,
    ///   with another one (stored under the same key), or with `nil` to store nothing. If it is dropped without a call,
    ///   the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// The async form of `willCacheResponse`; a delegate implements one of the two.
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
        if AsyncForm.isProbing(self, .response) { return .allow }
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
                DelegatesWithoutCaching.note(self)
                return completionHandler(proposedResponse)
            }
            next.urlSession(
                session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        if AsyncForm.isProbing(self, .cachedResponse) { return nil }
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
