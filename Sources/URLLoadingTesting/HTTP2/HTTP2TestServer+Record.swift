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

    /// The current counters.
    public var counts: TestServerCounts { recordedCounts }

    /// The requests that routes have read, oldest first, at most ``Configuration/recordedRequests``. `:authority` is
    /// recorded as the field Host, and `exchange` is the number of the request on its connection.
    public var requests: [HTTPTestServer.RecordedRequest] { recordedRequests }

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
    public nonisolated(nonsending) func wait(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (TestServerCounts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the server", file, line), until: condition)
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
    public nonisolated(nonsending) func wait(
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
        }
    }

    func received(_ arrived: [HTTP2Arrival], on connection: Int) {
        change { state in
            state.record.counts.frames += arrived.count
            for arrival in arrived { state.record(arrival, on: connection) }
        }
    }
}
