/// A question put to the caller while a load goes on, and the closure that answers it.
///
/// The load waits for the answer; cancelling the load cancels the closure. A closure that throws ends
/// the load with ``LoadError/Reason/decisionFailed``, its error in ``LoadError/underlying``.
public struct Decision<Question: Sendable, Answer: Sendable>: Sendable {
    let decide: @Sendable (Question) async throws -> Answer

    /// - Parameter decide: answers the question. It runs off every actor unless it names one.
    public init(_ decide: @escaping @Sendable (Question) async throws -> Answer) {
        self.decide = decide
    }
}

/// The decisions a caller wants to take itself. What is `nil` is decided by default; a load's own
/// decision goes before its session's.
///
/// ```swift
/// var decisions = Decisions()
/// decisions.redirect = Decision { redirect in
///     redirect.request.url.host() == "example.org" ? .follow : .deliver
/// }
/// let (data, response) = try await session.data(for: request, decisions: decisions)
/// ```
public struct Decisions: Sendable {
    /// Asked before each redirect is followed. By default all are, up to
    /// ``Configuration/maximumRedirects``.
    public var redirect: Decision<Redirect, RedirectDecision>?

    public init() {}
}

/// A redirect about to be followed.
public struct Redirect: Sendable {
    /// The response that asks for it. Its body is delivered only if the redirect is not followed.
    public let response: Response
    /// The request that would be sent: method, body and fields already changed by the rules of
    /// RFC 9110 §15.4, credentials removed if the origin differs.
    public let request: Request
    /// How many redirects this load has followed before.
    public let count: Int
}

/// What to do with a redirect.
public enum RedirectDecision: Sendable {
    /// Send the proposed request.
    case follow
    /// Send this request instead. It is sent as it is: nothing is removed from it.
    case instead(Request)
    /// Take the redirect response and its body as the result. This is no error.
    case deliver
    /// End the load as cancelled.
    case cancel
}
