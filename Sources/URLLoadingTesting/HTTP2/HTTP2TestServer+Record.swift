// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

extension HTTP2TestServer {
    /// A received frame.
    public struct RecordedFrame: Sendable, CustomStringConvertible {
        /// The number of the connection, from 1 in order of acceptance.
        public let connection: Int
        /// The frame. Of DATA only the first 64 bytes are kept; `declaredLength` is the original length.
        public let frame: HTTP2Frame
        /// The fields of the section that this frame completed.
        public let fields: HTTP2Fields?

        /// One line.
        public var description: String { "connection \(connection): \(frame)" }
    }

    /// Counters of the server's activity, all taken at the same moment.
    public struct Counts: Sendable, Hashable {
        /// Connections accepted.
        public internal(set) var accepted = 0
        /// Connections open now.
        public internal(set) var open = 0
        /// The maximum number of connections open at once.
        public internal(set) var mostOpen = 0
        /// Requests whose fields were read by routes.
        public internal(set) var requests = 0
        /// Responses sent completely by routes.
        public internal(set) var answered = 0
        /// Streams that routes have not answered yet.
        public internal(set) var openStreams = 0
        /// The maximum number of such streams at once.
        public internal(set) var mostOpenStreams = 0
        /// Frames received.
        public internal(set) var frames = 0
        /// Scripts paused at ``HTTP2Peer/hold()``.
        public internal(set) var held = 0
        /// Scripts that have ended.
        public internal(set) var scriptsEnded = 0
    }

    /// The current counters.
    public var counts: Counts { state.withLock { $0.counts } }

    /// The requests that routes have read, oldest first, at most ``Configuration/recordedRequests``. `:authority` is
    /// recorded as the field Host, and `exchange` is the number of the request on its connection.
    public var requests: [HTTPTestServer.RecordedRequest] { state.withLock { Array($0.requests.all) } }

    /// The received frames, oldest first, at most ``Configuration/recordedRequests``.
    public var frames: [RecordedFrame] { state.withLock { Array($0.frames.all) } }

    /// Violations of RFC 9113 by clients, and frames that scripts expected in vain.
    public var failures: [String] { state.withLock { $0.complaints } }

    /// Waits until the counters fulfil a condition.
    ///
    /// ```swift
    /// try await server.wait { $0.held == 1 }    // the script has come so far
    /// server.release()
    /// try await server.wait { $0.open == 0 }    // the client has closed the connection
    /// ```
    /// - Parameters:
    ///   - limit: the longest time to wait.
    ///   - condition: evaluated after every change of the counters.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public func wait(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the server", file, line)) {
            condition($0.counts) ? () : nil
        } seen: {
            $0.shown
        }
    }

    /// Waits for a frame of a client, including frames that arrived earlier.
    ///
    /// ```swift
    /// let goodbye = try await server.wait(for: .goAway)
    /// #expect(goodbye.frame.errorCode == .enhanceYourCalm)
    /// ```
    /// - Parameters:
    ///   - connection: its number, from 1 in order of acceptance; `nil` for any.
    ///   - count: waits for this many such frames, more than 0, and returns the last of them.
    ///   - limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public func wait(
        for kind: HTTP2Frame.Kind, onConnection connection: Int? = nil, count: Int = 1,
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> RecordedFrame {
        let place = connection.map { " on connection \($0)" } ?? ""
        let expected = count == 1 ? "a frame \(kind)" : "\(count) frames \(kind)"
        return try await wait(WaitLimit(limit, expected + place, file, line)) { state in
            let found = state.frames.all.lazy
                .filter { $0.frame.kind == kind && connection ?? $0.connection == $0.connection }.prefix(count)
            return found.count == count ? found.last : nil
        } seen: {
            $0.shown
        }
    }

    func received(_ arrived: [HTTP2Arrival], on connection: Int) {
        change { state in
            state.counts.frames += arrived.count
            for arrival in arrived { state.record(arrival, on: connection) }
        }
    }
}

extension HTTP2TestServer.Counts: ConnectionCounts {}

extension HTTP2ServerState {
    /// The state as shown by a wait that timed out.
    fileprivate var shown: String {
        let complained = complaints.isEmpty ? "" : "; complaints: \(complaints.shown())"
        return "\(counts); frames: \(frames.all.shown())\(complained)"
    }
}
