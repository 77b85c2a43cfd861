// SPDX-License-Identifier: Apache-2.0

// Common waiting operations of scripts. Meanwhile SETTINGS are acknowledged and PINGs answered; other control frames
// are skipped.

import Synchronization
import URLLoadingIO

extension HTTP2Peer {
    /// A request whose fields are complete.
    public struct Request: Sendable {
        /// The stream id.
        public let stream: Int
        /// The fields, including `:method` and `:path`.
        public let fields: HTTP2Fields
        /// Whether the request has no body.
        public let endStream: Bool
        /// The value of `:path`; empty if it is missing.
        public var path: String { fields[":path"] ?? "" }
        /// The value of `:method`; empty if it is missing.
        public var method: String { fields[":method"] ?? "" }
    }

    /// Waits for the client's preface and first SETTINGS, and returns them. Sends nothing.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``Failure``, if something else arrives first.
    @discardableResult
    public func expectPreface(
        timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> [HTTP2Frame.Setting] {
        try await expect("the first SETTINGS", timeout: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            guard frame.kind == .settings, !frame.isAck, let settings = frame.settings
            else { throw complain("expected the first SETTINGS, got \(frame)") }
            return settings
        }
    }

    /// Opens the connection as most scripts do: reads the client's preface, sends SETTINGS, and acknowledges the
    /// client's.
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

    /// Waits for a frame of one type.
    ///
    /// ```swift
    /// let code = try await peer.expect(.goAway).errorCode
    /// ```
    /// - Parameters:
    ///   - stream: the stream; `nil` for any.
    ///   - isAck: whether to wait for an acknowledgement or reply.
    ///   - limit: the longest time to wait.
    /// - Throws: ``Failure/left``; ``Failure/unexpected(_:)`` at the limit.
    public func expect(
        _ kind: HTTP2Frame.Kind, stream: Int? = nil, isAck: Bool = false,
        timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> HTTP2Frame {
        try await expect("\(kind)", timeout: limit) { (arrival) throws(Failure) in
            let frame = arrival.frame
            if frame.kind == kind, stream ?? frame.stream == frame.stream, frame.isAck == isAck { return frame }
            try await answerControl(frame)
            return nil
        }
    }

    /// Waits for a request, with its HEADERS and CONTINUATIONs.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``Failure``; ``Failure/unexpected(_:)`` if DATA or GOAWAY arrives instead, and at the limit.
    public func expectRequest(timeout limit: Duration = WaitTimedOut.usualLimit) async throws(Failure) -> Request {
        try await expectRequest(silently: false, timeout: limit)
    }

    /// Waits for a request. With `silently`, SETTINGS and PING stay unanswered.
    func expectRequest(
        silently: Bool, timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> Request {
        var endStream = false
        return try await expect("a request", timeout: limit) { (arrival) throws(Failure) in
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

    /// Receives the body of a request to its end, returning flow-control credit.
    /// - Parameter limit: the longest time to wait for the whole body.
    /// - Throws: ``Failure``; ``Failure/streamReset(_:)`` if the client resets the stream, ``Failure/unexpected(_:)``
    ///   at the limit.
    public func expectBody(
        of stream: Int, timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> [UInt8] {
        var body: [UInt8] = []
        return try await expect("the end of a body on stream \(stream)", timeout: limit) { (arrival) throws(Failure) in
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

    /// Processes arriving frames until `find` returns a value.
    private func expect<R>(
        _ expected: String, timeout limit: Duration, find: (HTTP2Arrival) async throws(Failure) -> R?
    ) async throws(Failure) -> R {
        let deadline = Poller.now() + limit.inNanoseconds
        let alarm = Alarm(.system, at: deadline, token)
        defer { alarm.off() }
        var received = MostRecent<HTTP2Frame>(8)
        while true {
            let seen = input.withLock { $0.reads }
            if let arrival = try takeArrival() {
                received.append(arrival.frame)
                if let found = try await find(arrival) { return found }
            } else if Poller.now() < deadline {
                try await awaitInput(since: seen, until: deadline)
            } else {
                throw complain("expected \(expected) within \(limit), got: \(received.all.shown())")
            }
        }
    }

    /// Acknowledges SETTINGS or answers a PING; ignores other frames.
    /// - Throws: ``Failure/left``.
    public func answerControl(_ frame: HTTP2Frame) async throws(Failure) {
        guard !frame.isAck else { return }
        if frame.kind == .settings { try await send(.settingsAck) }
        if frame.kind == .ping { try await send(.ping(frame.payload, ack: true)) }
    }
}
