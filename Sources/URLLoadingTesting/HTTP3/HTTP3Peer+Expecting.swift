// SPDX-License-Identifier: Apache-2.0

// The waiting operations of scripts. What arrives meanwhile and is not awaited is skipped.

#if HTTP3

import URLLoadingIO

extension HTTP3Peer {
    /// A request whose fields are complete.
    public struct Request: Sendable {
        /// The number of the stream, a multiple of 4.
        public let stream: Int
        /// The fields, including `:method` and `:path`.
        public let fields: HTTP2Fields
        /// The value of `:path`; empty if it is missing.
        public var path: String { fields[":path"] ?? "" }
        /// The value of `:method`; empty if it is missing.
        public var method: String { fields[":method"] ?? "" }
    }

    /// Receives what arrives next.
    /// - Throws: ``Failure/left``.
    public func receive() async throws(Failure) -> Arrival {
        while true { if let arrival = try await arrival() { return arrival } }
    }

    /// Waits for a request.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``Failure``; ``Failure/unexpected(_:)`` at the limit.
    public func expectRequest(timeout limit: Duration = WaitTimedOut.usualLimit) async throws(Failure) -> Request {
        try await expect("a request", timeout: limit) { (arrival) throws(Failure) in
            guard case .frame(_, let fields?) = arrival.content, arrival.stream.isMultiple(of: 4) else { return nil }
            return Request(stream: arrival.stream, fields: fields)
        }
    }

    /// Waits for a frame of one type, on any stream.
    ///
    /// ```swift
    /// let theirs = try await peer.expect(.settings).settings
    /// ```
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``Failure``; ``Failure/unexpected(_:)`` at the limit.
    public func expect(
        _ kind: HTTP3Frame.Kind, timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> HTTP3Frame {
        try await expect("\(kind)", timeout: limit) { (arrival) throws(Failure) in
            if case .frame(let frame, _) = arrival.content, frame.kind == kind { frame } else { nil }
        }
    }

    /// Receives the body of a request to its end.
    /// - Parameter limit: the longest time to wait for the whole body.
    /// - Throws: ``Failure``; ``Failure/streamReset`` if the client resets the stream, ``Failure/unexpected(_:)`` at
    ///   the limit.
    public func expectBody(
        of stream: Int, timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> [UInt8] {
        var body: [UInt8] = []
        return try await expect("the end of a body on stream \(stream)", timeout: limit) { (arrival) throws(Failure) in
            guard arrival.stream == stream else { return nil }
            switch arrival.content {
            case .frame(let frame, _) where frame.kind == .data: body += frame.payload
            case .end: return body
            case .reset: throw .streamReset
            case .frame, .opened, .closed: break
            }
            return nil
        }
    }

    /// Waits until the client ends a stream with an error, and returns its code.
    /// - Parameters:
    ///   - stream: its number; `nil` for any.
    ///   - limit: the longest time to wait.
    /// - Throws: ``Failure``; ``Failure/unexpected(_:)`` at the limit.
    public func expectReset(
        of stream: Int? = nil, timeout limit: Duration = WaitTimedOut.usualLimit
    ) async throws(Failure) -> HTTP3Frame.ErrorCode {
        try await expect("a reset", timeout: limit) { (arrival) throws(Failure) in
            guard stream ?? arrival.stream == arrival.stream, case .reset(let code) = arrival.content else {
                return nil
            }
            return code
        }
    }

    private func expect<R>(
        _ expected: String, timeout limit: Duration, find: (Arrival) throws(Failure) -> R?
    ) async throws(Failure) -> R {
        let deadline = Poller.now() + limit.inNanoseconds
        var received = MostRecent<Arrival>(8)
        while let arrival = try await arrival(until: deadline) {
            received.append(arrival)
            if let found = try find(arrival) { return found }
        }
        throw complain("expected \(expected) within \(limit), got: \(received.all.shown())")
    }

    /// Receives until the client has left, and returns what came.
    @discardableResult
    public func untilClosed() async -> [Arrival] {
        var arrivals: [Arrival] = []
        do throws(Failure) {
            while true { arrivals.append(try await receive()) }
        } catch { return arrivals }
    }
}

#endif
