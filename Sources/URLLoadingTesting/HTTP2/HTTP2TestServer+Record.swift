import Synchronization
import URLLoadingIO

extension HTTP2TestServer {
    /// A frame as it arrived.
    public struct RecordedFrame: Sendable, CustomStringConvertible {
        /// The number of its connection, from 1 in order of acceptance.
        public let connection: Int
        /// The frame. Of DATA only the first 64 bytes are kept, and `declaredLength` says how many there were.
        public let frame: HTTP2Frame
        /// The fields of the section that ended with this frame.
        public let fields: HTTP2Fields?

        /// One line.
        public var description: String { "connection \(connection): \(frame)" }
    }

    /// What has happened, in numbers, all of one moment.
    public struct Counts: Sendable, Hashable {
        /// Connections accepted.
        public internal(set) var accepted = 0
        /// Connections open.
        public internal(set) var open = 0
        /// The most connections open at once.
        public internal(set) var mostOpen = 0
        /// Requests whose fields were read, by routes.
        public internal(set) var requests = 0
        /// Answers sent in full, by routes.
        public internal(set) var answered = 0
        /// Streams that routes have not answered yet.
        public internal(set) var openStreams = 0
        /// The most of them at once.
        public internal(set) var mostOpenStreams = 0
        /// Frames received.
        public internal(set) var frames = 0
        /// Scripts that stand at ``HTTP2Peer/hold()``.
        public internal(set) var held = 0
        /// Scripts that have ended.
        public internal(set) var scriptsEnded = 0
    }

    /// What has happened so far.
    public var counts: Counts { state.withLock { $0.counts } }

    /// The requests that routes have read, oldest first, the newest ``Configuration/recordedRequests`` of them. Their
    /// `:authority` is the field Host, their `exchange` the number of the request on its connection.
    public var requests: [TestOrigin.RecordedRequest] { state.withLock { Array($0.requests.all) } }

    /// The frames that were received, oldest first, the newest ``Configuration/recordedRequests`` of them.
    public var frames: [RecordedFrame] { state.withLock { Array($0.frames.all) } }

    /// What clients did that RFC 9113 forbids, and what scripts waited for in vain.
    public var complaints: [String] { state.withLock { $0.complaints } }

    /// Waits until the counts are as they should be.
    ///
    /// ```swift
    /// try await server.wait { $0.held == 1 }    // the script has come so far
    /// server.release()
    /// try await server.wait { $0.open == 0 }    // the client has closed the connection
    /// ```
    /// - Parameters:
    ///   - limit: of the wait.
    ///   - condition: checked at every change of the counts.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public func wait(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the server", file, line)) {
            condition($0.counts) ? () : nil
        } seen: {
            $0.shown
        }
    }

    /// Waits for a frame of a client; one that has come already counts.
    ///
    /// ```swift
    /// let goodbye = try await server.wait(for: .goAway)
    /// #expect(goodbye.frame.errorCode == .enhanceYourCalm)
    /// ```
    /// - Parameters:
    ///   - connection: its number, from 1 in order of acceptance; `nil` for any.
    ///   - limit: of the wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public func wait(
        for kind: HTTP2Frame.Kind, onConnection connection: Int? = nil,
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> RecordedFrame {
        let place = connection.map { " on connection \($0)" } ?? ""
        return try await wait(WaitLimit(limit, "a frame \(kind)\(place)", file, line)) { state in
            state.frames.all.first { $0.frame.kind == kind && connection ?? $0.connection == $0.connection }
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
    /// For a wait that reached its limit.
    fileprivate var shown: String {
        let complained = complaints.isEmpty ? "" : "; complaints: \(complaints.shown())"
        return "\(counts); frames: \(frames.all.shown())\(complained)"
    }
}
