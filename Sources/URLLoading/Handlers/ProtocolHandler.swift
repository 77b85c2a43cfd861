public import FoundationEssentials
import URLLoadingIO

/// Answers requests: of a scheme of its own, or in the place of whoever would answer them otherwise.
/// Stubs, middleware, record and replay are handlers; `http`, `file` and `data` are answered by handlers
/// too.
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
/// A handler that changes what others answer forwards with ``ProtocolClient/next``:
///
/// ```swift
/// func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
///     var request = request
///     request.headers[.authorization] = "Bearer \(try await tokens.current())"
///     return try await client.next.load(request)
/// }
/// ```
/// Handlers are asked in reverse order of their registration: the session's
/// (``Configuration/handlers``), then those of the process (``ProtocolHandlers``), then the built-in ones.
/// The first that can handle a request does. Each request of a chain of redirects is asked for anew.
public protocol ProtocolHandler: Sendable {
    /// Whether this handler answers the request. Asked for every request; must be quick.
    func canHandle(_ request: Request) -> Bool

    /// The request in its canonical form, if that is another; `nil`, the default, if it is fine as it is.
    /// A change is reported as ``LoadEvent/canonicalized(_:)``.
    func canonical(_ request: Request) -> Request?

    /// Answers the request. Runs in a task of its own, with the priority and the task-local values of the
    /// load, and is cancelled when the load ends; then nobody waits for it.
    ///
    /// - Parameters:
    ///   - request: in its canonical form.
    ///   - client: the load that is answered.
    /// - Throws: a ``LoadError`` ends the load as it is; any other error, with
    ///   ``LoadError/Reason/handlerFailed``, the error in ``LoadError/underlying``.
    func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse
}

extension ProtocolHandler {
    public func canonical(_ request: Request) -> Request? { nil }
}

/// A handler of ours: it hears of the load's end by itself, so it runs in the load's own task.
protocol DirectHandler: ProtocolHandler {
    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange
}

extension DirectHandler {
    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        try await client.answer(request, from: self)
    }
}

/// The load a handler answers: whom it asks what it cannot know itself.
public struct ProtocolClient: Sendable {
    let load: LoadContext
    let scope: HandlerScope
    let hop: Hop
    let line: [any ProtocolHandler]
    /// Where in the line the handler stands.
    let position: Int
    /// No other handler waits for its answer.
    let isOutermost: Bool
    /// Notes whose the answers are that this handler, and those behind it, are given.
    let gathered: GatheredMarks

    /// The handlers behind this one.
    public var next: Next { Next(client: self) }

    /// Answers with what comes behind.
    public struct Next: Sendable {
        let client: ProtocolClient

        /// Lets the next handler that can handle the request answer it: at last the network.
        ///
        /// May be called more than once, for another try, or not at all. A body that is not taken is
        /// discarded with its answer. The request may be another than the one that was asked for; a
        /// session's own credentials still go to the origin the caller named only.
        /// - Throws: the ``LoadError`` of who answered; ``LoadError/Reason/cancelled`` once the load is over.
        public func load(_ request: Request) async throws(LoadError) -> ProtocolResponse {
            try await client.forward(client.hop(for: request))
        }
    }

    /// Asks the caller for a credential: ``Decisions/challenge`` of the load, or else of its session.
    /// Without one, the answer is ``ChallengeDecision/performDefaultHandling``.
    /// - Throws: ``LoadError`` as any decision does.
    public func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        try enter()
        defer { scope.leave() }
        let decision = try await load.decide(challenge)
        // What the handler makes of an identity is not seen here.
        switch decision {
        case .use, .present: gathered.add(.unstorable)
        case .performDefaultHandling, .rejectProtectionSpace, .continueWithoutCredential, .cancel, .accept: break
        }
        return decision
    }

    /// A hop with the handler's request in the place of the caller's.
    func hop(for request: Request) -> Hop {
        var hop = hop
        hop.isForeign = hop.isForeign || !request.goes(where: hop.request)
        hop.request = request
        return hop
    }

    func forward(_ hop: Hop) async throws(LoadError) -> ProtocolResponse {
        try enter()
        var exchange: (any Exchange)?
        defer { scope.leave(with: exchange) }
        let answered = try await HandlerLine.answer(hop, for: load, from: line, after: position, gathered)
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

    /// Begins library code inside the handler's task, which the load waits for when it ends. `leave` must follow.
    func enter() throws(LoadError) {
        guard load.enter(scope) else { throw LoadError(load.stopReason ?? .cancelled, phase: .waiting) }
    }

    func leave() { scope.leave() }
}

/// What a handler answers: a response with its body, or a redirect.
public struct ProtocolResponse: Sendable {
    let exchange: any Exchange
    /// What is answered, before the body.
    public var response: Response { exchange.response }
    /// The body, for one consumer. Who reads it answers with something else; an answer that is passed on
    /// keeps its body without anybody touching it.
    public let body: ResponseBody

    init(_ exchange: any Exchange) {
        self.exchange = exchange
        body = ResponseBody(ScopedBody(exchange, isInside: true))
    }

    /// A response and all of its body.
    public static func response(_ response: Response, data: Data = Data()) -> ProtocolResponse {
        ProtocolResponse(HandlerExchange(response, data.isEmpty ? nil : AnyChunkIterator(OneChunk(data))))
    }

    /// A response and a body in pieces, pulled no faster than the caller reads. The sequence is iterated in
    /// a task of its own for each piece, and cancelled when the load ends.
    ///
    /// Of an error the sequence throws, the caller gets a ``LoadError`` as it is, any other as
    /// ``LoadError/Reason/handlerFailed``.
    public static func response<S: AsyncSequence & Sendable>(
        _ response: Response, body: S
    ) -> ProtocolResponse where S.Element: ContiguousBytes {
        ProtocolResponse(HandlerExchange(response, AnyChunkIterator(body)))
    }

    /// A redirect: the caller's decision is asked, then the request is sent as it is. `file` and `data` are
    /// reached only from themselves.
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
