// What scripts usually wait for. SETTINGS and PING that come meanwhile are answered, other control frames skipped.

import URLLoadingIO

extension HTTP2Peer {
    /// A request whose fields are complete.
    public struct Request: Sendable {
        /// Its stream.
        public let stream: Int
        /// Its fields, `:method` and `:path` among them.
        public let fields: HTTP2Fields
        /// Whether there is no body.
        public let endStream: Bool
        /// The value of `:path`, or nothing.
        public var path: String { fields[":path"] ?? "" }
        /// The value of `:method`, or nothing.
        public var method: String { fields[":method"] ?? "" }
    }

    /// Waits for the client's preface and its first SETTINGS, and returns those. Sends nothing.
    /// - Parameter limit: of the wait.
    /// - Throws: ``Failure``, if something else comes first.
    @discardableResult
    public func expectPreface(
        within limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> [HTTP2Frame.Setting] {
        try await expect("the first SETTINGS", within: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            guard frame.kind == .settings, !frame.isAck, let settings = frame.settings
            else { throw complain("expected the first SETTINGS, got \(frame)") }
            return settings
        }
    }

    /// How most scripts begin: the client's preface is taken, ours sent, its SETTINGS acknowledged.
    ///
    /// ```swift
    /// try await peer.start(.maxConcurrentStreams(1))
    /// ```
    /// - Throws: ``Failure``.
    @discardableResult
    public func start(_ settings: HTTP2Frame.Setting...) async throws(Failure) -> [HTTP2Frame.Setting] {
        try await start(settings)
    }

    @discardableResult
    func start(_ settings: [HTTP2Frame.Setting]) async throws(Failure) -> [HTTP2Frame.Setting] {
        try await send(.settings(settings))
        let theirs = try await expectPreface()
        try await send(.settingsAck)
        return theirs
    }

    /// Waits for a frame of a kind.
    ///
    /// ```swift
    /// let code = try await peer.expect(.goAway).errorCode
    /// ```
    /// - Parameters:
    ///   - stream: on which stream; any, if `nil`.
    ///   - isAck: an answer, rather than a question.
    ///   - limit: of the wait.
    /// - Throws: ``Failure/left``; ``Failure/unexpected(_:)`` at the limit.
    public func expect(
        _ kind: HTTP2Frame.Kind, stream: Int? = nil, isAck: Bool = false,
        within limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> HTTP2Frame {
        try await expect("\(kind)", within: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            if frame.kind == kind, stream ?? frame.stream == frame.stream, frame.isAck == isAck { return frame }
            try await answerControl(frame)
            return nil
        }
    }

    /// Waits for a request: its HEADERS and CONTINUATIONs.
    /// - Parameter limit: of the wait.
    /// - Throws: ``Failure``, ``Failure/unexpected(_:)`` for DATA or a GOAWAY in its place, and at the limit.
    public func expectRequest(within limit: Duration = WaitTimedOut.usualLimit) async throws(Failure) -> Request {
        try await expectRequest(silently: false, within: limit)
    }

    /// Silently: SETTINGS and PING stay unanswered.
    func expectRequest(
        silently: Bool, within limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> Request {
        var endStream = false
        return try await expect("a request", within: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            if frame.kind == .headers { endStream = frame.endsStream }
            if let fields = arrival.fields {
                return Request(stream: frame.stream, fields: fields, endStream: endStream)
            }
            if frame.kind == .data || frame.kind == .goAway { throw complain("expected a request, got \(frame)") }
            if !silently { try await answerControl(frame) }
            return nil
        }
    }

    /// Takes the body of a request to its end, gives the windows back, and returns it.
    /// - Parameter limit: of the wait for all of it.
    /// - Throws: ``Failure``, ``Failure/streamReset(_:)`` if the client gives up, ``Failure/unexpected(_:)`` at the limit.
    public func expectBody(
        of stream: Int, within limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> [UInt8] {
        var body: [UInt8] = []
        return try await expect("the end of a body on stream \(stream)", within: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            if frame.stream == stream {
                if frame.kind == .resetStream { throw Failure.streamReset(frame.errorCode ?? .noError) }
                if frame.kind == .data {
                    body += frame.content ?? []
                    if !frame.payload.isEmpty { try await send(.windowUpdate(frame.payload.count)) }
                    if !frame.endsStream, !frame.payload.isEmpty {
                        try await send(.windowUpdate(stream: stream, frame.payload.count))
                    }
                }
                if frame.endsStream { return body }
            }
            try await answerControl(frame)
            return nil
        }
    }

    /// Takes what arrives until `look` returns something.
    private func expect<R>(
        _ expected: String, within limit: Duration, look: (HTTP2Arrival) async throws(Failure) -> R?
    ) async throws(Failure) -> R {
        let deadline = Poller.now() + limit.inNanoseconds
        let alarm = Alarm(.system, at: deadline, token)
        defer { alarm.off() }
        var came = Newest<HTTP2Frame>(8)
        while true {
            if let arrival = try takeArrival() {
                came.append(arrival.frame)
                if let found = try await look(arrival) { return found }
            } else if Poller.now() < deadline {
                try await awaitInput(until: deadline)
            } else {
                throw complain("expected \(expected) within \(limit), got: \(came.all.shown())")
            }
        }
    }

    /// The acknowledgement of a SETTINGS or PING; nothing for other frames.
    /// - Throws: ``Failure/left``.
    public func answerControl(_ frame: HTTP2Frame) async throws(Failure) {
        guard !frame.isAck else { return }
        if frame.kind == .settings { try await send(.settingsAck) }
        if frame.kind == .ping { try await send(.ping(frame.payload, ack: true)) }
    }
}
