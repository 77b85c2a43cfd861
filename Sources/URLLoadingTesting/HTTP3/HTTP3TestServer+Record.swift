// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Synchronization
import URLLoadingIO

extension HTTP3TestServer {
    /// A frame that a script or a route has received.
    public struct RecordedFrame: Sendable, CustomStringConvertible {
        /// The number of the connection, from 1 in order of acceptance.
        public let connection: Int
        /// The number of the stream.
        public let stream: Int
        /// The frame. Of DATA, which is recorded in pieces, only the first 64 bytes of each are kept.
        public let frame: HTTP3Frame
        /// The fields of HEADERS.
        public let fields: HTTP2Fields?

        /// One line.
        public var description: String { "connection \(connection), stream \(stream): \(frame)" }
    }

    /// How a client ended a stream or a connection.
    public struct RecordedEnding: Sendable, Hashable, CustomStringConvertible {
        /// The number of the connection, from 1 in order of acceptance.
        public let connection: Int
        /// The number of the stream that it has reset, or wants no more of; `nil` for the whole connection.
        public let stream: Int?
        /// The error code.
        public let code: HTTP3Frame.ErrorCode
        /// Whether the code is one of QUIC (RFC 9000 §20.1) and not of HTTP/3.
        public let isOfTransport: Bool

        /// One line.
        public var description: String {
            let place = stream.map { ", stream \($0)" } ?? ""
            return "connection \(connection)\(place): \(isOfTransport ? "QUIC error \(code.rawValue)" : "\(code)")"
        }
    }

    /// The current counters.
    public var counts: TestServerCounts { recordedCounts }

    /// The requests that routes have read, oldest first, at most ``Configuration/recordedRequests``. `:authority` is
    /// recorded as the field Host, and `exchange` is the number of the request on its connection.
    public var requests: [HTTPTestServer.RecordedRequest] { recordedRequests }

    /// The received frames, oldest first, at most ``Configuration/recordedRequests``.
    public var frames: [RecordedFrame] { state.withLock { Array($0.frames.all) } }

    /// The streams and connections that clients have ended with a code, oldest first, at most
    /// ``Configuration/recordedRequests``.
    public var endings: [RecordedEnding] { state.withLock { Array($0.endings.all) } }

    /// Violations of RFC 9000, 9114 and 9204 by clients, and what scripts expected in vain; the first 1,000.
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
    public nonisolated(nonsending) func wait(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (TestServerCounts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the server", file, line), until: condition)
    }

    /// Waits until a client has ended a stream, or a connection, with a code; endings from before count too.
    ///
    /// ```swift
    /// let ending = try await server.waitForEnding { $0.stream == nil }
    /// #expect(ending.code == .excessiveLoad)
    /// ```
    /// - Parameters:
    ///   - limit: the longest time to wait.
    ///   - condition: which ending is awaited.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    @discardableResult
    public nonisolated(nonsending) func waitForEnding(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        where condition: @Sendable (RecordedEnding) -> Bool = { _ in true }
    ) async throws -> RecordedEnding {
        try await wait(WaitLimit(limit, "an ending by the client", file, line)) {
            $0.endings.all.first(where: condition)
        }
    }

    func received(_ arrival: HTTP3Peer.Arrival, on connection: Int) {
        guard case .frame(var frame, let fields) = arrival.content else { return }
        if frame.kind == .data, frame.payload.count > 64 { frame.payload = Array(frame.payload.prefix(64)) }
        let recorded = RecordedFrame(connection: connection, stream: arrival.stream, frame: frame, fields: fields)
        change { state in
            state.record.counts.frames += 1
            state.frames.append(recorded)
        }
    }
}

#endif
