// What sessions tell the delegates of tasks. A default of a task's own delegate passes the call on to the delegate of the
// session: what the one does not implement, the other hears.

public import Foundation

/// Hears of tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was made: the first call about it, made before the method that makes it returns, on the thread of whoever
    /// called that, and not on the delegate queue. The place to configure tasks, and for a delegate of one task to get hold
    /// of it.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// The time has come for a task with an ``URLSessionTask/earliestBeginDate``. By default its request is sent.
    /// - Parameter completionHandler: to be called once, from any thread, now or later. If it is dropped without a call the
    ///   task is cancelled, and ``URLSession/misuseHandler`` told.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// The same, async.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// A redirect is about to be followed; nothing was sent to the new URL. By default it is followed.
    /// - Parameters:
    ///   - response: asks for the redirect.
    ///   - request: what would be sent: method, fields and body changed by the rules of HTTP, credentials
    ///     removed if it goes to another server.
    ///   - completionHandler: to be called once, from any thread, now or later: with `request` to follow,
    ///     with another request to send that instead, with `nil` to take the redirect response and its
    ///     body as the result. If it is dropped without a call the task is cancelled, and
    ///     ``URLSession/misuseHandler`` told.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The same, async: a delegate implements one of the two. Here and below, an async method begins on the delegate queue,
    /// and goes on there unless it names an actor.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// A server or a proxy wants a credential. By default what the URL, the storage or the netrc file has is used; if
    /// there is nothing, the response that asked is the result.
    /// - Parameter completionHandler: as above.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same, async.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The body of a request that is a stream is needed: for a task made with `uploadTask(withStreamedRequest:)`, and
    /// again for every request whose stream must be sent once more, after a redirect, a challenge or a stale connection.
    /// - Parameter completionHandler: as above; `nil` fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The same, async.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// The rest of the body of an upload that is gone on with is needed: for a task made of the resume data of one made
    /// with `uploadTask(withStreamedRequest:)`.
    /// - Parameters:
    ///   - offset: what the server has; the stream begins with the byte behind it.
    ///   - completionHandler: as above; `nil`, the default, fails the task.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The same, async.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64) async
        -> InputStream?

    /// A part of the request's body was handed to the system.
    /// - Parameters:
    ///   - bytesSent: since the last such call.
    ///   - totalBytesSent: of this request; a redirect that sends the body again begins anew. Of an upload that is gone
    ///     on with, from the beginning of the whole.
    ///   - totalBytesExpectedToSend: the length of the body; -1 if nobody knows.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// An interim response (1xx, but not 101).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// There is no network, and the task waits for one; see ``URLSessionConfiguration/waitsForConnectivity``.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// What the task took, before its last call.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task is over: its last call, exactly once. Not made for tasks with a completion handler.
    /// - Parameter error: a `URLError`; `nil` if nothing went wrong. A 4xx or 5xx status is no error.
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
        if AsyncForm.isTried(self, .delayedRequest) { return (.continueLoading, nil) }
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
        if AsyncForm.isTried(self, .redirect) { return nil }
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
        if AsyncForm.isTried(self, .challenge) { return (.performDefaultHandling, nil) }
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
        if AsyncForm.isTried(self, .bodyStream) { return nil }
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
        if AsyncForm.isTried(self, .bodyStreamFrom) { return nil }
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

    /// The delegate of the session, if this is the task's own.
    func next(in session: URLSession, _ task: URLSessionTask) -> (any URLSessionDelegate)? {
        guard task.delegate === self, let delegate = session.delegate, delegate !== self else { return nil }
        return delegate
    }
}
