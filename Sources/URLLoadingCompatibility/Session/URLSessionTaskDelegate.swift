// SPDX-License-Identifier: Apache-2.0

// The delegate of tasks. A default implementation in a task's own delegate passes the call on to the session's
// delegate.

public import Foundation

/// Is notified of the events of tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was created. This is the first call about the task, made before the creating method returns, on the
    /// calling thread and not on the delegate queue. The method in which to configure tasks, and in which a task's own
    /// delegate obtains the task. A stream task that a data task has become is announced on the delegate queue, before
    /// `didBecome streamTask`.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// The ``URLSessionTask/earliestBeginDate`` of a task has come. By default its request is sent.
    /// - Parameter completionHandler: must be called once, from any thread, now or later. If it is dropped without a
    ///   call, the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The async form of `willBeginDelayedRequest`; a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// A redirect is about to be followed; no request was sent to the new URL yet. By default it is followed.
    /// - Parameters:
    ///   - response: the redirect response.
    ///   - request: the request to be sent: method, fields and body as HTTP requires, without credentials if the
    ///     redirect leads to another origin.
    ///   - completionHandler: must be called once, from any thread, now or later: with `request` to follow the
    ///     redirect, with another request to send that instead, or with `nil` to deliver the redirect response and its
    ///     body as the result. If it is dropped without a call, the task is cancelled and ``URLSession/misuseHandler``
    ///     is called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The async form of `willPerformHTTPRedirection`; a delegate implements one of the two. All async methods begin on
    /// the delegate queue and continue there unless they are isolated to an actor.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// A server or a proxy requests a credential. By default the credential of the URL, the storage or the netrc file
    /// is used; without one, the response that carried the challenge is the result.
    /// - Parameter completionHandler: must be called once, from any thread, now or later. If it is dropped without a
    ///   call, the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The async form of `didReceive challenge`; a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The body stream of a request is needed: for a task created with `uploadTask(withStreamedRequest:)`, and whenever
    /// a stream must be sent again after a redirect, a challenge or a stale connection.
    /// - Parameter completionHandler: must be called once, from any thread, now or later; `nil` fails the task. If it
    ///   is dropped without a call, the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The async form of `needNewBodyStream`; a delegate implements one of the two.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// The rest of the body of a resumed upload is needed: for a task created from the resume data of a task that was
    /// created with `uploadTask(withStreamedRequest:)`.
    /// - Parameters:
    ///   - offset: the number of bytes that the server has; the stream begins with the byte at this offset.
    ///   - completionHandler: must be called once, from any thread, now or later; `nil`, the default, fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The async form of `needNewBodyStreamForTask:from:`; a delegate implements one of the two.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64) async
        -> InputStream?

    /// A part of the request's body was passed to the system.
    /// - Parameters:
    ///   - bytesSent: bytes sent since the previous call.
    ///   - totalBytesSent: bytes of this request's body; restarts at 0 when a redirect sends the body again. For a
    ///     resumed upload, counts from the beginning of the whole body.
    ///   - totalBytesExpectedToSend: the length of the body; -1 if unknown.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An informational response was received (1xx, except 101).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// No network is available, and the task waits for one; see ``URLSessionConfiguration/waitsForConnectivity``.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// The metrics of a task, before its last call.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task is over. This is its last call, made exactly once. Not made for tasks with a completion handler.
    /// - Parameter error: a `URLError`; `nil` after success. A 4xx or 5xx status is not an error.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        nextTaskDelegate(session, task)?.urlSession(session, didCreateTask: task)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        AsyncForm.answer(self, .delayedRequest, task.lane) {
            await self.urlSession(session, task: task, willBeginDelayedRequest: request)
        } then: {
            completionHandler($0.0, $0.1)
        } otherwise: {
            guard let next = self.nextTaskDelegate(session, task) else {
                return completionHandler(.continueLoading, nil)
            }
            next.urlSession(session, task: task, willBeginDelayedRequest: request, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        if AsyncForm.isProbing(self, .delayedRequest) { return (.continueLoading, nil) }
        return await withCheckedContinuation { continuation in
            urlSession(session, task: task, willBeginDelayedRequest: request) {
                continuation.resume(returning: ($0, $1))
            }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        AsyncForm.answer(self, .redirect, task.lane) {
            await self.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
        } then: {
            completionHandler($0)
        } otherwise: {
            guard let next = self.nextTaskDelegate(session, task) else { return completionHandler(request) }
            next.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        if AsyncForm.isProbing(self, .redirect) { return nil }
        return await withCheckedContinuation { continuation in
            urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request) {
                continuation.resume(returning: $0)
            }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        AsyncForm.answer(self, .challenge, task.lane) {
            await self.urlSession(session, task: task, didReceive: challenge)
        } then: {
            completionHandler($0.0, $0.1)
        } otherwise: {
            guard let next = self.nextTaskDelegate(session, task) else {
                return completionHandler(.performDefaultHandling, nil)
            }
            next.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if AsyncForm.isProbing(self, .challenge) { return (.performDefaultHandling, nil) }
        return await withCheckedContinuation { continuation in
            urlSession(session, task: task, didReceive: challenge) { continuation.resume(returning: ($0, $1)) }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        AsyncForm.answer(self, .bodyStream, task.lane) {
            GivenStream(stream: await self.urlSession(session, needNewBodyStreamForTask: task))
        } then: {
            completionHandler($0.stream)
        } otherwise: {
            guard let next = self.nextTaskDelegate(session, task) else { return completionHandler(nil) }
            next.urlSession(session, task: task, needNewBodyStream: completionHandler)
        }
    }

    public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
        if AsyncForm.isProbing(self, .bodyStream) { return nil }
        let given: GivenStream = await withCheckedContinuation { continuation in
            urlSession(
                session, task: task, needNewBodyStream: { continuation.resume(returning: GivenStream(stream: $0)) })
        }
        return given.stream
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        AsyncForm.answer(self, .bodyStreamFrom, task.lane) {
            GivenStream(stream: await self.urlSession(session, needNewBodyStreamForTask: task, from: offset))
        } then: {
            completionHandler($0.stream)
        } otherwise: {
            guard let next = self.nextTaskDelegate(session, task) else { return completionHandler(nil) }
            next.urlSession(session, task: task, needNewBodyStreamFrom: offset, completionHandler: completionHandler)
        }
    }

    public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64)
        async -> InputStream?
    {
        if AsyncForm.isProbing(self, .bodyStreamFrom) { return nil }
        let given: GivenStream = await withCheckedContinuation { continuation in
            urlSession(session, task: task, needNewBodyStreamFrom: offset) {
                continuation.resume(returning: GivenStream(stream: $0))
            }
        }
        return given.stream
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        nextTaskDelegate(session, task)?.urlSession(
            session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
            totalBytesExpectedToSend: totalBytesExpectedToSend)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        nextTaskDelegate(session, task)?.urlSession(session, task: task, didReceiveInformationalResponse: response)
    }

    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        nextTaskDelegate(session, task)?.urlSession(session, taskIsWaitingForConnectivity: task)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        nextTaskDelegate(session, task)?.urlSession(session, task: task, didFinishCollecting: metrics)
    }

    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        nextTaskDelegate(session, task)?.urlSession(session, task: task, didCompleteWithError: error)
    }

    fileprivate func nextTaskDelegate(_ session: URLSession, _ task: URLSessionTask) -> (any URLSessionTaskDelegate)? {
        next(in: session, task) as? any URLSessionTaskDelegate
    }

    /// Returns the session's delegate if this is the task's own delegate; `nil` otherwise.
    func next(in session: URLSession, _ task: URLSessionTask) -> (any URLSessionDelegate)? {
        guard task.delegate === self, let delegate = session.delegate, delegate !== self else { return nil }
        return delegate
    }
}
