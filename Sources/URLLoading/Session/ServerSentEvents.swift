public import FoundationEssentials
public import URLLoadingWire

extension Session {
    /// The events that a server sends (WHATWG HTML 9.2), over as many connections as it takes.
    ///
    /// ```swift
    /// for try await event in session.serverSentEvents(for: Request(url: url)) {
    ///     print(event.type, event.data)
    /// }
    /// ```
    /// Nothing is sent before somebody iterates; see ``ServerSentEvents``.
    /// - Parameters:
    ///   - request: any method. `Accept: text/event-stream` and `Cache-Control: no-store` are added if it has
    ///     no such fields. Its Last-Event-ID, if it has one, says where to begin. Its idle timeout counts for
    ///     each connection, and its resource timeout for the whole; without them there is no limit, whatever
    ///     the configuration says: a server may be silent for hours.
    ///   - decisions: go before the session's own, on every connection.
    ///   - reconnection: when to connect again; `nil` is ``ServerSentEvents/Reconnection/default`` for methods
    ///     that may be repeated (RFC 9110 §9.2.2), ``ServerSentEvents/Reconnection/never`` for the others.
    public nonisolated func serverSentEvents(
        for request: Request, decisions: Decisions? = nil, reconnection: ServerSentEvents.Reconnection? = nil
    ) -> ServerSentEvents {
        ServerSentEvents(
            session: self, request: request, decisions: decisions,
            reconnection: reconnection ?? (request.method.isIdempotent ? .default : .never))
    }

    /// The events of a URL; see ``serverSentEvents(for:decisions:reconnection:)``.
    public nonisolated func serverSentEvents(from url: URL) -> ServerSentEvents {
        serverSentEvents(for: Request(url: url))
    }
}

/// The events that a server sends, one after the other, however often the connection ends.
///
/// Get it from ``Session/serverSentEvents(for:decisions:reconnection:)``. Each iteration has a connection of its own,
/// and reads it as events are asked for: a slow reader slows the server. It takes one of
/// ``Configuration/maximumConnectionsPerHost``.
///
/// When the connection ends or is lost it connects again after a while, and tells the server which event
/// was the last (Last-Event-ID); see ``Reconnection``. It ends
/// - without an error when the server answers 204, or has ended its answer and nothing is to be repeated;
/// - with ``LoadError/Reason/unacceptableStatus`` or ``LoadError/Reason/unacceptableContentType`` if a
///   server answers with anything but 200 and `text/event-stream`; the error carries the response;
/// - with the ``LoadError`` of a load that another attempt would not mend, such as a certificate that is
///   not accepted, of the first connection, or of the last attempt;
/// - with ``LoadError/Reason/cancelled`` when the iterating task is cancelled, or the session invalidated.
///
/// The connection is let go when the iterator is.
public struct ServerSentEvents: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent
    public typealias Failure = LoadError

    let session: Session
    let request: Request
    let decisions: Decisions?
    let reconnection: Reconnection

    public func makeAsyncIterator() -> Iterator {
        Iterator(stream: EventStream(session, request, decisions, reconnection))
    }

    public struct Iterator: AsyncIteratorProtocol {
        var stream: EventStream

        /// The next event; `nil` when there will be none any more.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> ServerSentEvent? {
            if actor == nil { return try await stream.next() }
            return try await stream.nextElsewhere()
        }

        /// The next event; `nil` when there will be none any more.
        public mutating func next() async throws(LoadError) -> ServerSentEvent? { try await stream.nextElsewhere() }
    }

    /// When to connect again: a value.
    ///
    /// ```swift
    /// var reconnection = ServerSentEvents.Reconnection.default
    /// reconnection.maximumAttempts = 5
    /// reconnection.delayBounds = .milliseconds(200)...(.seconds(30))
    /// ```
    /// The wait is what the server has said (`retry`), or ``delay``, within ``delayBounds``; it doubles with every
    /// attempt in a row that brought nothing, up to the upper bound, and is prolonged by chance.
    public struct Reconnection: Sendable, Hashable {
        /// For ever, after 3 seconds unless the server says otherwise.
        public static let `default` = Reconnection()
        /// Not at all: the sequence ends with the first connection.
        public static let never: Reconnection = {
            var reconnection = Reconnection()
            reconnection.maximumAttempts = 0
            return reconnection
        }()

        /// The wait until the server names another. At least zero.
        public var delay: Duration = .seconds(3)
        /// The shortest and the longest wait, whatever the server says.
        public var delayBounds: ClosedRange<Duration> = .seconds(1)...(.seconds(300))
        /// The most by which a wait is prolonged by chance, in parts of it, at least 0: clients that lost their
        /// server at the same moment do not all come back at the same moment. 0 is for tests.
        public var jitter = 0.2
        /// The most attempts in a row that bring not one byte, at least 0; `nil` for any number.
        public var maximumAttempts: Int?
        /// How long to try since the connection was lost; `nil` for ever. No attempt begins later.
        public var maximumDuration: Duration?
        /// Whether the first connection is tried again, too. If not, the sequence ends with its error at once:
        /// the address may be wrong.
        public var retriesFirstConnection = false

        /// The standard; see ``default``.
        public init() {}
    }
}
