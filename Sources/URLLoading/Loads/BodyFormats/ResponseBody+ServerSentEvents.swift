// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

extension ResponseBody {
    /// The body as server-sent events (WHATWG HTML 9.2), whatever its content type. The sequence claims the body, as
    /// iterating the body does. It does not reconnect at the end of the body, as
    /// ``Session/serverSentEvents(for:decisions:reconnection:)`` does.
    ///
    /// ```swift
    /// try await session.load(request) { response, body in
    ///     try response.requireSuccess()
    ///     for try await event in body.serverSentEvents { print(event.data) }
    /// }
    /// ```
    /// An event without the empty line after it is discarded, because it may be incomplete.
    public var serverSentEvents: Events { Events(body: self) }

    /// The server-sent events of one body.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = ServerSentEvent
        public typealias Failure = LoadError

        let body: ResponseBody

        public func makeAsyncIterator() -> Iterator {
            Iterator(reader: body.source.claim() ? EventReader(body.source) : nil)
        }

        /// The iterator of the sequence.
        public struct Iterator: AsyncIteratorProtocol {
            var reader: EventReader?

            /// The next event; `nil` at the end of the body.
            /// - Throws: ``LoadError`` of the load; ``LoadError/Reason/eventLineTooLong`` and
            ///   ``LoadError/Reason/eventTooLarge`` beyond ``Configuration/Limits``. Cancellation ends the load
            ///   with ``LoadError/Reason/cancelled``.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError)
                -> ServerSentEvent?
            {
                guard reader != nil else { throw .bodyUnavailable }
                if actor == nil { return try await reader?.next() }
                return try await reader?.nextOffActor()
            }

            /// The next event; `nil` at the end of the body.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next() async throws(LoadError) -> ServerSentEvent? {
                guard reader != nil else { throw .bodyUnavailable }
                return try await reader?.nextOffActor()
            }
        }
    }
}

/// Parses events from the chunks of one body. Its owner has claimed the body.
struct EventReader: Sendable {
    private let source: any BodySource
    private var parser: EventStreamParser
    private var chunk: Chunk?
    private var position = 0
    /// True once any byte was received, even of a comment.
    private(set) var hasReceived = false
    /// The server's reconnection time, if it has sent one.
    private(set) var retry: Duration?

    init(_ source: any BodySource, lastEventID: String = "") {
        self.source = source
        parser = EventStreamParser(limits: EventStreamLimits(source.limits), lastEventID: lastEventID)
    }

    var lastEventID: String { parser.lastEventID }

    mutating func next() async throws(LoadError) -> ServerSentEvent? {
        while true {
            while let chunk {
                switch try step(chunk) {
                case .event(let event)?: return event
                case .retry(let milliseconds)?: retry = .milliseconds(milliseconds)
                case nil: self.chunk = nil
                }
            }
            guard let chunk = try await source.next() else { return nil }
            hasReceived = true
            (self.chunk, position) = (chunk, 0)
        }
    }

    /// Returns the next event, parsed off the caller's actor.
    @concurrent mutating func nextOffActor() async throws(LoadError) -> ServerSentEvent? { try await next() }

    private mutating func step(_ chunk: Chunk) throws(LoadError) -> EventStreamItem? {
        let rest = UnsafeRawBufferPointer(rebasing: chunk.storage.bytes(chunk.range)[position...])
        var consumed = 0
        defer { position += consumed }
        do throws(WireViolation) { return try parser.next(rest, consumed: &consumed) } catch {
            throw LoadError(error, .receiving)
        }
    }
}

extension EventStreamLimits {
    fileprivate init(_ limits: Configuration.Limits) {
        self.init()
        lineSize = limits.eventLineSize
        eventSize = limits.eventSize
    }
}
