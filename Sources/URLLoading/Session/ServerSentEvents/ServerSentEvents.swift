// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

extension Session {
    /// The server-sent events of a request (WHATWG HTML 9.2), with reconnection.
    ///
    /// ```swift
    /// for try await event in session.serverSentEvents(for: Request(url: url)) {
    ///     print(event.type, event.data)
    /// }
    /// ```
    /// The request is sent when the sequence is iterated; see ``ServerSentEvents``.
    /// - Parameters:
    ///   - request: any method. `Accept: text/event-stream` and `Cache-Control: no-store` are added if it has no such
    ///     fields. Its Last-Event-ID field, if any, sets the starting point. Its idle timeout applies to each
    ///     connection, and its resource timeout to the whole sequence; without them there is no limit, whatever the
    ///     configuration says, because a server may be silent for hours.
    ///   - decisions: take precedence over the session's own, on every connection.
    ///   - reconnection: the rules of reconnection; `nil` is ``ServerSentEvents/Reconnection/default`` for idempotent
    ///     methods (RFC 9110 §9.2.2), ``ServerSentEvents/Reconnection/never`` for the others.
    public nonisolated func serverSentEvents(
        for request: Request, decisions: Decisions? = nil, reconnection: ServerSentEvents.Reconnection? = nil
    ) -> ServerSentEvents {
        ServerSentEvents(
            session: self, request: request, decisions: decisions,
            reconnection: reconnection ?? (request.method.isIdempotent ? .default : .never))
    }

    /// The server-sent events of a URL; see ``serverSentEvents(for:decisions:reconnection:)``.
    public nonisolated func serverSentEvents(from url: URL) -> ServerSentEvents {
        serverSentEvents(for: Request(url: url))
    }
}

/// A sequence of server-sent events that reconnects when the connection ends.
///
/// Get it from ``Session/serverSentEvents(for:decisions:reconnection:)``. Each iteration has a connection of its own,
/// and reads it on demand: a slow reader slows the server. It occupies one of
/// ``Configuration/Connections/maximumPerHost``.
///
/// When the connection ends or is lost, the sequence reconnects after a delay, and sends the last event's ID
/// (Last-Event-ID); see ``Reconnection``. It ends
/// - without an error when the server answers 204, or ends its response and no reconnection is allowed;
/// - with ``LoadError/Reason/unacceptableStatus`` or ``LoadError/Reason/unacceptableContentType`` if a server answers
///   with anything but 200 and `text/event-stream`; the error carries the response;
/// - with the ``LoadError`` of a permanent failure, such as an untrusted certificate, of the first connection, or of
///   the last attempt;
/// - with ``LoadError/Reason/cancelled`` when the iterating task is cancelled, or the session invalidated.
///
/// The connection is released with the iterator.
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

    /// The iterator of the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        var stream: EventStream

        /// Returns the next event; `nil` when the sequence has ended.
        /// - Throws: the ``LoadError`` of the load.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> ServerSentEvent? {
            if actor == nil { return try await stream.next() }
            return try await stream.nextOffActor()
        }

        /// Returns the next event; `nil` when the sequence has ended.
        /// - Throws: the ``LoadError`` of the load.
        public mutating func next() async throws(LoadError) -> ServerSentEvent? { try await stream.nextOffActor() }
    }

    /// The rules of reconnection: a value.
    ///
    /// ```swift
    /// var reconnection = ServerSentEvents.Reconnection.default
    /// reconnection.maximumAttempts = 5
    /// reconnection.delayBounds = .milliseconds(200)...(.seconds(30))
    /// ```
    /// The delay is the server's reconnection time (`retry`), or ``delay``, within ``delayBounds``; it doubles with
    /// every consecutive failed attempt, up to the upper bound, and is extended by a random ``jitter``.
    public struct Reconnection: Sendable, Hashable {
        /// Unlimited reconnection, after 3 seconds unless the server sets another delay.
        public static let `default` = Reconnection()
        /// No reconnection: the sequence ends with the first connection.
        public static let never: Reconnection = {
            var reconnection = Reconnection()
            reconnection.maximumAttempts = 0
            return reconnection
        }()

        /// The delay until the server sets another. At least zero; 3 seconds by default.
        public var delay: Duration = .seconds(3)
        /// The shortest and the longest delay, whatever the server sets; 1 second to 300 seconds by default.
        public var delayBounds: ClosedRange<Duration> = .seconds(1)...(.seconds(300))
        /// The maximum random extension of a delay, as a fraction of it, at least 0; 0.2 by default. It spreads the
        /// reconnections of clients that lost their server at the same moment. Use 0 in tests.
        public var jitter = 0.2
        /// The maximum number of consecutive attempts that receive no byte, at least 0; `nil`, the default, for no
        /// limit.
        public var maximumAttempts: Int?
        /// The time after the loss of the connection within which attempts may begin; `nil`, the default, for no limit.
        public var maximumDuration: Duration?
        /// Whether the first connection is retried, too; false by default: the sequence then ends with its error at
        /// once, because the URL may be wrong.
        public var retriesFirstConnection = false

        /// Creates the default rules; see ``default``.
        public init() {}
    }
}
