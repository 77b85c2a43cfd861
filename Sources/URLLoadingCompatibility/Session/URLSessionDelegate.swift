// What sessions and tasks tell their delegates. Every method has a default, so that a delegate
// implements what it wants to hear: didReceiveData and didCompleteWithError are enough to get data
// (checklist 46).
//
// A default of a task's own delegate passes the call on to the delegate of the session: what the one
// does not implement, the other hears.

public import Foundation

/// Hears of a session. All calls come on the session's ``URLSession/delegateQueue``, one at a time.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session was invalidated, and its last task is over: the last call, after which the session lets
    /// go of its delegate.
    /// - Parameter error: always `nil`: sessions do not become invalid by themselves.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)
}

/// Hears of tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
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

    /// A part of the request's body was handed to the system.
    /// - Parameters:
    ///   - bytesSent: since the last such call.
    ///   - totalBytesSent: of this request; a redirect that sends the body again begins anew.
    ///   - totalBytesExpectedToSend: the length of the body; -1 if nobody knows.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// The task is over: its last call, exactly once. Not made for tasks with a completion handler.
    /// - Parameter error: a `URLError`; `nil` if nothing went wrong. A 4xx or 5xx status is no error.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// Hears of the responses and bodies of data tasks; not of those with a completion handler.
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
}

// MARK: - Defaults

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
}

extension URLSessionTaskDelegate {
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let next = next(in: session, task) as? any URLSessionTaskDelegate else { return completionHandler(request) }
        next.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request,
            completionHandler: completionHandler)
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        guard let next = next(in: session, task) as? any URLSessionTaskDelegate else { return }
        next.urlSession(
            session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
            totalBytesExpectedToSend: totalBytesExpectedToSend)
    }

    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        (next(in: session, task) as? any URLSessionTaskDelegate)?.urlSession(session, task: task, didCompleteWithError: error)
    }

    /// The delegate of the session, if this is the task's own.
    fileprivate func next(in session: URLSession, _ task: URLSessionTask) -> (any URLSessionDelegate)? {
        guard task.delegate === self, let delegate = session.delegate, delegate !== self else { return nil }
        return delegate
    }
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let next = next(in: session, dataTask) as? any URLSessionDataDelegate else { return completionHandler(.allow) }
        next.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        (next(in: session, dataTask) as? any URLSessionDataDelegate)?.urlSession(session, dataTask: dataTask, didReceive: data)
    }
}
