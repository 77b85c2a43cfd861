// SPDX-License-Identifier: Apache-2.0

// In this folder: the protocol of handlers, their order, and the caller's own

public import FoundationEssentials
import URLLoadingIO

/// Answers requests: those of a custom URL scheme, or any others in place of the built-in handlers. Stubs, middleware,
/// record and replay are handlers; the library itself answers `http`, `file` and `data` with handlers.
///
/// ```swift
/// struct Greeting: ProtocolHandler {
///     func canHandle(_ request: Request) -> Bool { request.url.scheme == "greet" }
///     func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
///         .response(Response(url: request.url, mediaType: MediaType("text/plain")), data: Data("hello".utf8))
///     }
/// }
/// configuration.handlers = [Greeting()]
/// ```
/// A handler that changes requests or responses forwards with ``ProtocolClient/next``:
///
/// ```swift
/// func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
///     var request = request
///     request.headers[.authorization] = "Bearer \(try await tokens.current())"
///     return try await client.next.load(request)
/// }
/// ```
/// Handlers are consulted in reverse order of their registration: the session's (``Configuration/handlers``), then
/// those of the process (``ProtocolHandlers``), then the built-in ones. The first that can handle a request answers it.
/// Each request of a chain of redirects is offered anew.
public protocol ProtocolHandler: Sendable {
    /// Returns whether this handler answers the request. Called for every request; must be quick.
    func canHandle(_ request: Request) -> Bool

    /// Returns the request in its canonical form; `nil`, the default, leaves it unchanged. A change is reported as
    /// ``LoadEvent/canonicalized(_:)``.
    func canonical(_ request: Request) -> Request?

    /// Answers the request. Runs in a task of its own, with the priority and the task-local values of the load. The
    /// task is cancelled when the load ends, and is not awaited then.
    ///
    /// - Parameters:
    ///   - request: the request in its canonical form.
    ///   - client: the load that is answered.
    /// - Throws: a ``LoadError`` ends the load unchanged; any other error ends it with
    ///   ``LoadError/Reason/handlerFailed``, the error in ``LoadError/underlying``.
    func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse
}

extension ProtocolHandler {
    public func canonical(_ request: Request) -> Request? { nil }
}

/// A handler of another layer of this package, on behalf of the program. ``canHandle(_:)`` and ``canonical(_:)`` call
/// code of the program that may block, so they run on `BlockingThreads.programs`. ``load(_:client:)`` and the bodies
/// that it returns do not block, and run on the event loop even while the program blocks all threads of the pool.
package protocol ProgramHandler: ProtocolHandler {}

/// A built-in handler. It observes the end of the load, so it runs in the load's own task.
protocol DirectHandler: ProtocolHandler {
    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange
}

extension DirectHandler {
    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        try await client.answer(request, from: self)
    }
}

/// The handler's access to the load that it answers: the next handlers and the caller's decisions.
public struct ProtocolClient: Sendable {
    let load: LoadContext
    let scope: HandlerScope
    let hop: Hop
    let line: [any ProtocolHandler]
    /// The handler's index in the order of consultation.
    let position: Int
    /// True if no other handler waits for the response.
    let isOutermost: Bool
    /// Collects the owners of the responses that this handler, and those after it, receive.
    let gathered: CollectedMarks

    /// The handlers after this one.
    public var next: Next { Next(client: self) }

    /// Forwards requests to the handlers after this one.
    public struct Next: Sendable {
        let client: ProtocolClient

        /// Forwards a request to the next handler that can handle it; the last is the network.
        ///
        /// A handler may call it several times, as for a retry, or not at all. A body that is not read is discarded
        /// with its response. The request may differ from the one the handler was given; the session's own credentials
        /// are still sent only to the origin that the caller named.
        /// - Throws: the ``LoadError`` of the next handler; ``LoadError/Reason/cancelled`` once the load has ended.
        public func load(_ request: Request) async throws(LoadError) -> ProtocolResponse {
            try await client.forward(client.hop(for: request))
        }

        /// Forwards a request as ``load(_:)`` does, with fields that are made anew for each attempt at it.
        ///
        /// ```swift
        /// try await client.next.load(request) { request in
        ///     var headers = request.headers
        ///     headers["X-Signature"] = signature(request)
        ///     return headers
        /// }
        /// ```
        /// The library repeats a request without calling its handlers again: under a retry policy, on a new connection
        /// in place of one that the server had closed, on another connection after a 421, without `Expect` after a 417,
        /// and after a challenge.
        /// - Parameter fields: called once before the request is forwarded, and once before each repetition; if several
        ///   handlers forward in this way, theirs in the order of the handlers. Given the request with the fields of an
        ///   earlier attempt; returns all fields of the next one.
        /// - Throws: the errors of ``load(_:)``, and those of `fields` in the first attempt. In a repetition they end
        ///   the load as errors of the handler do.
        public func load(
            _ request: Request, fieldsOfEachAttempt fields: @escaping @Sendable (Request) async throws -> Headers
        ) async throws -> ProtocolResponse {
            try await load(request, fieldsOfEachAttempt: fields, beforeRepetition: nil)
        }

        /// - Parameter repeated: called with the head of each response after which a retry policy repeats the request,
        ///   before its delay.
        func load(
            _ request: Request, fieldsOfEachAttempt fields: @escaping AttemptCalls.Fields,
            beforeRepetition repeated: (@Sendable (HTTPHead) -> Void)?
        ) async throws -> ProtocolResponse {
            var request = request
            request.headers = try await fields(request)
            var hop = client.hop(for: request)
            hop.calls = AttemptCalls(hop.calls, fields: fields, repeated: repeated)
            return try await client.forward(hop)
        }
    }

    /// Calls the challenge decision: ``Decisions/challenge`` of the load, or else of its session. Without a decision it
    /// returns ``ChallengeDecision/performDefaultHandling``.
    /// - Throws: ``LoadError`` as any decision does.
    public func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        try enter()
        defer { scope.leave() }
        let decision = try await load.decide(challenge)
        // The handler's use of a credential is not observable, so its response must not be stored.
        switch decision {
        case .use, .present: gathered.add(.unstorable)
        case .performDefaultHandling, .rejectProtectionSpace, .continueWithoutCredential, .cancel, .accept: break
        }
        return decision
    }

    /// Returns a hop with the handler's request in place of the caller's.
    func hop(for request: Request) -> Hop {
        var hop = hop
        hop.lead(to: request)
        return hop
    }

    func forward(_ hop: Hop) async throws(LoadError) -> ProtocolResponse {
        try enter()
        var exchange: (any Exchange)?
        defer { scope.leave(with: exchange) }
        let answered = try await HandlerChain.answer(hop, for: load, from: line, after: position, gathered)
        exchange = answered
        note(answered, hop)
        return ProtocolResponse(answered)
    }

    func answer(_ request: Request, from handler: any DirectHandler) async throws(LoadError) -> ProtocolResponse {
        var hop = hop
        hop.request = request
        try enter()
        var exchange: (any Exchange)?
        defer { scope.leave(with: exchange) }
        let answered = try await handler.exchange(hop, for: load)
        exchange = answered
        note(answered, hop)
        return ProtocolResponse(answered)
    }

    private func note(_ exchange: any Exchange, _ hop: Hop) {
        if load.core.cache != nil { gathered.add(exchange.marks(for: CacheQuery(hop, load))) }
    }

    /// Enters library code in the handler's task; the load waits for it when it ends. `leave` must follow.
    func enter() throws(LoadError) {
        guard load.enter(scope) else { throw LoadError(load.stopReason ?? .cancelled, phase: .waiting) }
    }

    func leave() { scope.leave() }
}

/// The answer of a handler: a response with its body, or a redirect.
public struct ProtocolResponse: Sendable {
    let exchange: any Exchange
    /// The response without its body.
    public var response: Response { exchange.response }
    /// The body, for one consumer. A handler that reads it must answer with another body; a response that is forwarded
    /// unread keeps its body.
    public let body: ResponseBody

    init(_ exchange: any Exchange) {
        self.exchange = exchange
        body = ResponseBody(ScopedBody(exchange, isInside: true))
    }

    /// Creates an answer of a response with its whole body.
    public static func response(_ response: Response, data: Data = Data()) -> ProtocolResponse {
        ProtocolResponse(HandlerExchange(response, data.isEmpty ? nil : AnyChunkIterator(OneChunk(data))))
    }

    /// Creates an answer of a response and a body in pieces, pulled no faster than the caller reads. Each piece is
    /// pulled in a task of its own, which is cancelled when the load ends.
    ///
    /// A ``LoadError`` that the sequence throws reaches the caller unchanged, any other error as
    /// ``LoadError/Reason/handlerFailed``.
    public static func response<S: AsyncSequence & Sendable>(
        _ response: Response, body: S
    ) -> ProtocolResponse where S.Element: ContiguousBytes {
        ProtocolResponse(HandlerExchange(response, AnyChunkIterator(body)))
    }

    /// Creates a redirect: the caller's redirect decision is called, then the request is sent as it is. `file` and
    /// `data` URLs are reached only from URLs of the same scheme.
    public static func redirect(_ response: Response, to request: Request) -> ProtocolResponse {
        ProtocolResponse(HandlerExchange(response, nil, redirect: request))
    }
}

private struct OneChunk: AsyncSequence {
    let data: Data
    init(_ data: Data) { self.data = data }
    func makeAsyncIterator() -> Iterator { Iterator(data: data) }

    struct Iterator: AsyncIteratorProtocol {
        var data: Data?
        mutating func next() async -> Data? {
            defer { data = nil }
            return data
        }
    }
}
