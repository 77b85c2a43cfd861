// What scripts usually wait for. SETTINGS and PING that come meanwhile are answered, other control frames skipped.

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
    /// - Throws: ``Failure``, if something else comes first.
    @discardableResult
    public func expectPreface() async throws(Failure) -> [HTTP2Frame.Setting] {
        let frame = try await receive()
        guard frame.kind == .settings, !frame.isAck, let settings = frame.settings
        else { throw complain("expected the first SETTINGS, got \(frame)") }
        return settings
    }

    /// How most scripts begin: the client's preface is taken, ours sent, its SETTINGS acknowledged.
    ///
    /// ```swift
    /// try await peer.start(.maxConcurrentStreams(1))
    /// ```
    /// - Throws: ``Failure``.
    @discardableResult
    public func start(_ settings: HTTP2Frame.Setting...) async throws(Failure) -> [HTTP2Frame.Setting] { try await start(settings) }

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
    /// - Throws: ``Failure/left``.
    public func expect(_ kind: HTTP2Frame.Kind, stream: Int? = nil, isAck: Bool = false) async throws(Failure) -> HTTP2Frame {
        while true {
            let frame = try await receive()
            if frame.kind == kind, stream ?? frame.stream == frame.stream, frame.isAck == isAck { return frame }
            try await answerControl(frame)
        }
    }

    /// Waits for a request: its HEADERS and CONTINUATIONs.
    /// - Throws: ``Failure``, ``Failure/unexpected(_:)`` for DATA or a GOAWAY in its place.
    public func expectRequest() async throws(Failure) -> Request { try await expectRequest(silently: false) }

    /// Silently: SETTINGS and PING stay unanswered.
    func expectRequest(silently: Bool) async throws(Failure) -> Request {
        var endStream = false
        while true {
            let arrival = try await arrival()
            let frame = arrival.frame
            if frame.kind == .headers { endStream = frame.endsStream }
            if let fields = arrival.fields { return Request(stream: frame.stream, fields: fields, endStream: endStream) }
            if frame.kind == .data || frame.kind == .goAway { throw complain("expected a request, got \(frame)") }
            if !silently { try await answerControl(frame) }
        }
    }

    /// Takes the body of a request to its end, gives the windows back, and returns it.
    /// - Throws: ``Failure``, ``Failure/streamReset(_:)`` if the client gives up.
    public func expectBody(of stream: Int) async throws(Failure) -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let arrival = try await arrival()
            let frame = arrival.frame
            if frame.stream == stream {
                if frame.kind == .resetStream { throw .streamReset(frame.errorCode ?? .noError) }
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
