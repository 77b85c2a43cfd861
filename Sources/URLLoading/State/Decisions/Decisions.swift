// SPDX-License-Identifier: Apache-2.0

// In this folder: the caller's closures that answer questions during a load, and how one is run

/// A closure of the caller's that answers a question during a load.
///
/// The load waits for the answer. Set a deadline if the closure uses a network, or asks a person:
///
/// ```swift
/// decisions.redirect = Decision(timeout: .seconds(2), fallback: .doNotFollow) { redirect in
///     try await policy.allows(redirect.request.url) ? .follow : .cancel
/// }
/// ```
/// The closure runs in a task of its own, with the priority and the task-local values of the load, off every actor
/// unless it names one. It may throw: that ends the load with ``LoadError/Reason/decisionFailed``, the error in
/// ``LoadError/underlying``. When the load ends or the deadline passes, the closure is cancelled and not awaited, and
/// its answer is dropped (``Session/leakedClosures`` counts the closures that still run).
public struct Decision<Question: Sendable, Answer: Sendable>: Sendable {
    let deadline: Duration?
    let fallback: Answer?
    let decide: @Sendable (Question) async throws -> Answer
    /// Whether the closure is code of this package that does not block, and runs on the event loop.
    let isOnLoop: Bool
    /// Identifies the decision: a connection that it has approved is not used by loads with another decision.
    let identity = DecisionIdentity.next()

    /// Creates a decision.
    /// - Parameters:
    ///   - deadline: the time limit of the closure, more than zero; `nil` for none but the load's own. The time does
    ///     not count as the peer's silence.
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
        isOnLoop = false
    }

    private init(onLoop decide: @escaping @Sendable (Question) async throws -> Answer) {
        (deadline, fallback) = (nil, nil)
        self.decide = decide
        isOnLoop = true
    }

    /// Returns a decision of another layer of this package. Its closure does not block, and runs on the event loop,
    /// even while the program blocks all threads of the pool.
    package static func onLoop(_ decide: @escaping @Sendable (Question) async throws -> Answer) -> Self {
        Self(onLoop: decide)
    }
}

/// The decisions of a session or a load. A decision that is `nil` is taken by default. A load's own decision precedes
/// its session's, except for server trust, client certificates and NTLM, because those authenticate connections that
/// all loads of the session share.
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
    /// Called before each redirect is followed. By default all are followed, up to ``Configuration/Redirects/maximum``.
    public var redirect: Decision<Redirect, RedirectDecision>? {
        get { given?.values.redirect }
        set { change { $0.redirect = newValue } }
    }
    /// Called when the head of the response has been received, before its body is read. By default the body is loaded.
    public var response: Decision<Response, ResponseDisposition>? {
        get { given?.values.response }
        set { change { $0.response = newValue } }
    }
    /// Called when a server, a proxy or a ``ProtocolHandler`` requires a credential. By default the credential of the
    /// URL, the session's store or its netrc file is used; if there is none, the response is the result.
    public var challenge: Decision<Challenge, ChallengeDecision>? {
        get { given?.values.challenge }
        set { change { $0.challenge = newValue } }
    }
    /// Called when the whole body of a storable response (RFC 9111 §3) has been received: for data and upload tasks and
    /// session methods, not for downloads. Without one, the response is stored unchanged.
    ///
    /// ```swift
    /// decisions.cache = Decision { entry in
    ///     entry.data.count < 1 << 20 ? .store : .skip
    /// }
    /// ```
    /// The body is held in memory for it. A body beyond the maximum size of an entry is not stored, and the closure not
    /// called.
    public var cache: Decision<CachedResponse, CacheDecision>? {
        get { given?.values.cache }
        set { change { $0.cache = newValue } }
    }
    /// Called for the body of a request whose body is ``RequestBody/provided``: when it is sent, and again each time it
    /// is sent again. Without it such a request fails.
    ///
    /// ```swift
    /// request.body = .provided
    /// decisions.bodyProvider = Decision { demand in .file(try await spool.latest()) }
    /// ```
    public var bodyProvider: Decision<BodyProviderContext, RequestBody>? {
        get { given?.values.bodyProvider }
        set { change { $0.bodyProvider = newValue } }
    }
    /// Called for each request of http or https when every field of it is known, and before it is sent: for the first
    /// time, after a redirect, to answer a challenge, for a range, and for each retry, over HTTP/1.1 and HTTP/2. What
    /// it returns is added to that one sending. ``MessageSigner`` (RFC 9421) and ``AWSSigner`` answer it.
    ///
    /// ```swift
    /// decisions.sign = try MessageSigner(key: key, keyID: "client-7").decision
    /// ```
    /// The cache serves responses to signed requests to loads with the same decision, whatever it signs with: set
    /// another decision for another user. A stale response that is refreshed in the background is refreshed with it,
    /// when the load may have ended.
    ///
    /// A connection is held for the request meanwhile. After a signature with an Authorization field, a 401 is the
    /// result, because no other credential can stand beside it. A request that NTLM or Negotiate authenticates cannot
    /// be signed, and neither can a transfer of a background session, whose agent has no keys.
    public var sign: Decision<SigningRequest, RequestSignature>? {
        get { given?.values.sign?.decision }
        set { change { $0.sign = newValue.map { Signing($0) } } }
    }
    /// Whether ``sign`` is set, without a copy of it.
    var signs: Bool { given?.values.sign != nil }

    /// Creates decisions that are all taken by default.
    public init() {}

    /// `nil` without any decision, as for most loads. One reference, because the decisions themselves have 600 bytes,
    /// which each call that passes them on would copy into its frame.
    private var given: Given?

    private struct Values: Sendable {
        var redirect: Decision<Redirect, RedirectDecision>?
        var response: Decision<Response, ResponseDisposition>?
        var challenge: Decision<Challenge, ChallengeDecision>?
        var cache: Decision<CachedResponse, CacheDecision>?
        var bodyProvider: Decision<BodyProviderContext, RequestBody>?
        var sign: Signing?
    }

    /// Boxed, because it is rarely set, and classic tasks copy the others.
    private final class Signing: Sendable {
        let decision: Decision<SigningRequest, RequestSignature>
        init(_ decision: Decision<SigningRequest, RequestSignature>) { self.decision = decision }
    }

    private final class Given: Sendable {
        let values: Values
        init(_ values: Values) { self.values = values }
    }

    private mutating func change(_ edit: (inout Values) -> Void) {
        var values = given?.values ?? Values()
        edit(&values)
        given = Given(values)
    }
}

/// The answer to whether a response is stored.
public enum CacheDecision: Sendable {
    /// Store the response unchanged.
    case store
    /// Store this response instead: with another body or head, with properties of the caller's, or in memory only. The
    /// cache key stays the same.
    case instead(CachedResponse)
    /// Do not store the response.
    case skip
}

/// The request that needs a body, and the reason.
public struct BodyProviderContext: Sendable {
    /// The reason for which a body is needed.
    public enum Cause: Sendable, Hashable {
        /// The request is sent for the first time.
        case first
        /// A redirect keeps the method and the body (RFC 9110 §15.4.8, §15.4.9).
        case redirect
        /// The peer had closed the idle connection before it answered.
        case staleConnection
        /// The server does not support `Expect: 100-continue` (RFC 9110 §15.5.18).
        case expectationFailed
        /// An attempt failed, and ``RetryPolicy`` retries it.
        case retry
        /// The request is repeated with credentials (RFC 9110 §11). Digest with auth-int calls the closure twice,
        /// because a sequence is read once for the digest and once to be sent.
        case challenge
    }
    /// The request that needs the body.
    public let request: Request
    /// The reason for which a body is needed.
    public let cause: Cause
}

/// Thrown by the ``Decisions/bodyProvider`` of a compatibility layer that has no further body for a request. The load
/// fails with ``LoadError/Reason/requestBodyFailed``.
package struct NoFurtherBody: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A redirect about to be followed.
public struct Redirect: Sendable {
    /// The redirect response. Its body is delivered only if the redirect is not followed.
    public let response: Response
    /// The request that would be sent: method, body and fields changed by the rules of RFC 9110 §15.4, credentials
    /// removed if the origin differs. If the Location cannot be read as a URL, it is the request that was answered;
    /// ``RedirectDecision/follow`` then ends the load with ``LoadError/Reason/badRedirect``.
    public let request: Request
    /// The number of redirects that this load has followed before.
    public let count: Int
}

/// The answer to a redirect.
public enum RedirectDecision: Sendable {
    /// Send the proposed request.
    case follow
    /// Send this request instead, unchanged: credentials are not removed from it.
    case instead(Request)
    /// Take the redirect response and its body as the result, without an error.
    case doNotFollow
    /// Cancel the load.
    case cancel
}

/// The answer to a response.
public enum ResponseDisposition: Sendable {
    /// Load the body.
    case allow
    /// Turn the load into a download. Available to a ``LoadTask`` made by ``Session/dataTask(_:decisions:)``, whose
    /// events end with ``LoadEvent/becameDownload(_:)``, which has the download's task. For other loads it fails with
    /// ``LoadError/Reason/badDecision``.
    case becomeDownload(DownloadOptions = DownloadOptions())
    /// Take over the connection, with the bytes received after the head. Available to a ``LoadTask`` made by
    /// ``Session/dataTask(_:decisions:)`` for http or https, whose events end with ``LoadEvent/becameStream(_:)``,
    /// which has the stream; the stream begins when it is resumed. For other loads it fails with
    /// ``LoadError/Reason/badDecision``.
    case becomeStream
    /// Cancel the load. The rest of the body is not read; its connection is closed.
    case cancel
}
