// SPDX-License-Identifier: Apache-2.0

// The delegate of a session. Every method has a default, so a delegate implements only the methods it needs:
// didReceiveData and didCompleteWithError suffice to load data.

public import Foundation

/// Is notified of the events of a session. All calls are made on the session's ``URLSession/delegateQueue``, one at a
/// time.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session was invalidated and its last task is over. This is the last call; the session then releases its
    /// delegate.
    /// - Parameter error: always `nil`, because sessions do not become invalid by themselves.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A connection-level challenge was received: a server is to be trusted, a client certificate is requested, or a
    /// login by NTLM or Negotiate. The answer applies to the connection and to all tasks that use it. Without this
    /// method, ``URLSessionTaskDelegate`` is asked; without that, the default handling applies.
    /// - Parameter completionHandler: must be called once, from any thread, now or later. If it is dropped without a
    ///   call, the task is cancelled and ``URLSession/misuseHandler`` is called.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The events of a background session that the program had missed are delivered: their calls have returned, and
    /// come no more. Called once, and only if events were missed.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)

    /// The async form of `didReceive challenge`; a delegate implements one of the two.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)
}

extension URLSessionDelegate {
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}

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
        if AsyncForm.isProbing(self, .connectionChallenge) { return (.performDefaultHandling, nil) }
        return await withCheckedContinuation { continuation in
            urlSession(session, didReceive: challenge) {
                _ = DefaultMark.take()
                continuation.resume(returning: ($0, $1))
            }
        }
    }
}

/// Set by a default implementation while it calls a completion handler on its thread, which reveals that the delegate
/// does not implement the method. Swift offers no means to find out.
enum DefaultMark {
    private static let key = "URLLoading.default"

    static func set() { Thread.current.threadDictionary[key] = true }

    /// Returns whether the mark is set, and clears it.
    static func take() -> Bool {
        let dictionary = Thread.current.threadDictionary
        guard dictionary[key] != nil else { return false }
        dictionary.removeObject(forKey: key)
        return true
    }
}
