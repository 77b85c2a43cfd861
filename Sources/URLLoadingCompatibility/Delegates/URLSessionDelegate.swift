// What sessions tell their delegates. Every method has a default, so that a delegate implements what it wants to hear:
// didReceiveData and didCompleteWithError are enough to get data (checklist 46).

public import Foundation

/// Hears of a session. All calls come on the session's ``URLSession/delegateQueue``, one at a time.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session was invalidated, and its last task is over: the last call, after which the session lets
    /// go of its delegate.
    /// - Parameter error: always `nil`: sessions do not become invalid by themselves.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A connection asks: whether a server is to be trusted, for a certificate of ours, or for a login by NTLM or
    /// Negotiate. What is answered holds for the connection, whichever tasks use it. A delegate without this method is
    /// asked by the method of tasks (``URLSessionTaskDelegate``); without that, as if there were no delegate.
    /// - Parameter completionHandler: to be called once, from any thread, now or later. If it is dropped without a call
    ///   the task is cancelled, and ``URLSession/misuseHandler`` told.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same, async: a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        AsyncForm.answer(self, .connectionChallenge, session.lane) {
            await self.urlSession(session, didReceive: challenge)
        } then: {
            completionHandler($0.0, $0.1)
        } otherwise: {
            DefaultMark.set()
            completionHandler(.performDefaultHandling, nil)
        }
    }

    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if AsyncForm.isTried(self, .connectionChallenge) { return (.performDefaultHandling, nil) }
        return await withCheckedContinuation { continuation in
            urlSession(session, didReceive: challenge) {
                _ = DefaultMark.take()
                continuation.resume(returning: ($0, $1))
            }
        }
    }
}

/// Set while a default of ours calls a completion handler, on its thread: how to tell that a delegate does not implement
/// a method. Swift has no way to ask.
enum DefaultMark {
    private static let key = "URLLoading.default"

    static func set() { Thread.current.threadDictionary[key] = true }

    /// Whether it is set; it is not any more.
    static func take() -> Bool {
        let dictionary = Thread.current.threadDictionary
        guard dictionary[key] != nil else { return false }
        dictionary.removeObject(forKey: key)
        return true
    }
}
