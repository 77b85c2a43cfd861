/// A question put to the caller while a load goes on, and the closure that answers it.
///
/// The load waits for the answer. Whoever answers over a network, or asks a person, sets a deadline:
///
/// ```swift
/// decisions.redirect = Decision(timeout: .seconds(2), fallback: .doNotFollow) { redirect in
///     try await policy.allows(redirect.request.url) ? .follow : .cancel
/// }
/// ```
/// The closure runs in a task of its own, with the priority and the task-local values of the load, off
/// every actor unless it names one. It may throw: that ends the load with
/// ``LoadError/Reason/decisionFailed``, the error in ``LoadError/underlying``. When the load ends or the
/// deadline passes, the closure is cancelled and no longer waited for: what it answers then reaches
/// nobody (``Session/leakedClosures`` counts those that go on nevertheless).
public struct Decision<Question: Sendable, Answer: Sendable>: Sendable {
    let deadline: Duration?
    let fallback: Answer?
    let decide: @Sendable (Question) async throws -> Answer
    /// Tells it from others: connections that one has let through serve no load that has another.
    let identity = DecisionIdentity.next()

    /// - Parameters:
    ///   - deadline: how long the closure may take, more than zero; `nil` for as long as the load lives.
    ///     The time does not count as the peer's silence.
    ///   - fallback: the answer when the deadline has passed; without one the load ends with
    ///     ``LoadError/Reason/decisionTimeout``.
    ///   - decide: answers the question.
    public init(
        timeout deadline: Duration? = nil, fallback: Answer? = nil,
        _ decide: @escaping @Sendable (Question) async throws -> Answer
    ) {
        self.deadline = deadline
        self.fallback = fallback
        self.decide = decide
    }
}

/// The decisions a caller wants to take itself. What is `nil` is decided by default; a load's own
/// decision goes before its session's, but for trust, client certificates and NTLM, which open connections that all loads
/// may use. What is not given costs nothing.
///
/// ```swift
/// var decisions = Decisions()
/// decisions.redirect = Decision { redirect in
///     redirect.request.url.host() == "example.org" ? .follow : .doNotFollow
/// }
/// decisions.response = Decision { response in
///     response.mediaType?.type == "image" ? .allow : .cancel
/// }
/// let (data, response) = try await session.data(for: request, decisions: decisions)
/// ```
public struct Decisions: Sendable {
    /// Asked before each redirect is followed. By default all are, up to
    /// ``Configuration/maximumRedirects``.
    public var redirect: Decision<Redirect, RedirectDecision>?
    /// Asked when the response is known and nothing of its body was read. By default it is taken.
    public var response: Decision<Response, ResponseDisposition>?
    /// Asked when a server, a proxy or a ``ProtocolHandler`` wants a credential. By default what the URL, the
    /// session's store or its netrc file has for it is used; if there is nothing, the response is the result.
    public var challenge: Decision<Challenge, ChallengeDecision>?
    /// Asked what to keep of a response that may be kept (RFC 9111 §3), when all of its body is here: of data and upload
    /// tasks and verbs, not of downloads (checklist 98). Without one, all of it is kept.
    ///
    /// ```swift
    /// decisions.cache = Decision { entry in
    ///     entry.data.count < 1 << 20 ? .store : .skip
    /// }
    /// ```
    /// The body is held in memory for it; of what is larger than an entry may be nothing is kept, and nothing asked.
    public var cache: Decision<CachedResponse, CacheDecision>?
    /// Asked for the body of a request whose body is ``RequestBody/provided``: when it is sent, and again
    /// each time it is sent again. Without one such a request is refused when it is made.
    ///
    /// ```swift
    /// request.body = .provided
    /// decisions.bodyProvider = Decision { demand in .file(try await spool.latest()) }
    /// ```
    public var bodyProvider: Decision<BodyProviderContext, RequestBody>?

    public init() {}
}

/// What to keep of a response.
public enum CacheDecision: Sendable {
    /// All of it.
    case store
    /// This in its place: another body or head, something of the caller's with it, or in memory only. What it is found
    /// by stays.
    case instead(CachedResponse)
    /// Nothing.
    case skip
}

/// A body is needed.
public struct BodyProviderContext: Sendable {
    /// Why.
    public enum Cause: Sendable, Hashable {
        /// The request is sent for the first time.
        case first
        /// A redirect leads to another place, with the same method and body (RFC 9110 §15.4.8, §15.4.9).
        case redirect
        /// The connection had been closed by the peer; nothing was answered.
        case staleConnection
        /// The server refused to be asked whether it wants the body (RFC 9110 §15.5.18).
        case expectationFailed
        /// A try has failed, and ``RetryPolicy`` wants another.
        case retry
        /// The server or a proxy wanted a credential, and gets one now (RFC 9110 §11). One that wants the body proved
        /// (auth-int) costs a second demand: a sequence is read once for the proof and once to be sent.
        case challenge
    }
    /// The request it is for.
    public let request: Request
    public let cause: Cause
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
    case doNotFollow
    /// End the load as cancelled.
    case cancel
}

/// What to do with a response.
public enum ResponseDisposition: Sendable {
    /// Go on to its body.
    case allow
    /// Make a download of it: of a ``LoadTask`` made by ``Session/dataTask(_:decisions:)``. Its events end
    /// with ``LoadEvent/becameDownload(_:)``, and bring the task that goes on with it. Elsewhere this is
    /// ``LoadError/Reason/badDecision``.
    case becomeDownload(DownloadOptions = DownloadOptions())
    /// Take over its connection, with what was received behind the head: of a ``LoadTask`` made by
    /// ``Session/dataTask(_:decisions:)`` for http or https. Its events end with
    /// ``LoadEvent/becameStream(_:)``, and bring the stream, which begins when it is resumed. Elsewhere this
    /// is ``LoadError/Reason/badDecision``.
    case becomeStream
    /// End the load as cancelled. The rest of the body is not read; its connection is closed.
    case cancel
}
