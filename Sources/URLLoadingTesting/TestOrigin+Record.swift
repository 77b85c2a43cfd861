import Synchronization
import URLLoadingIO
public import URLLoadingWire

extension TestOrigin {
    /// A request as it arrived.
    public struct RecordedRequest: Sendable, CustomStringConvertible {
        /// The method.
        public let method: Method
        /// The request target, as it was sent.
        public let target: String
        /// The version the client stated.
        public let version: HTTPVersion
        /// Its fields.
        public let headers: Headers
        /// The body, up to ``TestOrigin/Configuration/recordedBodySize``. Empty if the route does not
        /// read bodies.
        public internal(set) var body: [UInt8] = []
        /// The number of bytes of the body, whether kept or not.
        public internal(set) var bodyCount: Int64 = 0
        /// The fields after a chunked body.
        public internal(set) var trailers = Headers()
        /// The number of its connection, from 1 in order of acceptance.
        public let connection: Int
        /// Its number on that connection, from 1.
        public let exchange: Int
        /// What the TLS handshake agreed on; `nil` in the clear.
        public let tls: TLSInfo?

        /// The path: the target up to the `?`.
        public var path: String { String(target.prefix { $0 != "?" }) }

        /// The request line.
        public var description: String {
            "\(method) \(target) \(version) on connection \(connection), exchange \(exchange)"
        }
    }

    /// What a TLS handshake agreed on.
    public struct TLSInfo: Sendable, Hashable {
        /// `TLSv1.2` or `TLSv1.3`.
        public let version: String
        /// OpenSSL's name of the cipher.
        public let cipher: String
        /// The protocol chosen by ALPN, if any.
        public let applicationProtocol: String?
        /// The name the client asked for (SNI), if any.
        public let serverName: String?
        /// Whom the client has proved to be: the subject of its certificate; `nil` if it was not asked, or did not say.
        public let clientSubject: String?
        /// Whether the client came back with a session.
        public let isResumed: Bool

        init(_ negotiated: TLSNegotiated) {
            version = negotiated.version == .tls12 ? "TLSv1.2" : "TLSv1.3"
            cipher = negotiated.cipher
            applicationProtocol = negotiated.applicationProtocol
            serverName = negotiated.serverName
            clientSubject = negotiated.clientSubject
            isResumed = negotiated.isResumed
        }
    }

    /// What has happened, in numbers, all of one moment.
    public struct Counts: Sendable, Hashable {
        /// Connections accepted.
        public internal(set) var accepted = 0
        /// Connections open.
        public internal(set) var open = 0
        /// The most connections open at once.
        public internal(set) var mostOpen = 0
        /// Requests whose head was read.
        public internal(set) var requests = 0
        /// Answers sent in full.
        public internal(set) var answered = 0
        /// Connections that stand still at a ``Fault/Effect/stall``.
        public internal(set) var stalled = 0
        /// Faults that took effect.
        public internal(set) var faults = 0
    }

    /// What has happened so far.
    public var counts: Counts { state.withLock { $0.counts } }

    /// The requests read completely or answered, oldest first, the newest
    /// ``Configuration/recordedRequests`` of them.
    public var requests: [RecordedRequest] { state.withLock { Array($0.requests.all) } }

    /// Waits until the counts are as they should be: for tests that must not guess how long things take.
    ///
    /// ```swift
    /// try await origin.wait { $0.stalled == 1 }   // the client now waits for an answer
    /// task.cancel()
    /// try await origin.wait { $0.open == 0 }      // its socket is closed
    /// ```
    /// - Parameters:
    ///   - limit: of the wait.
    ///   - condition: checked at every change of the counts.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func wait(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the origin", file, line)) {
            condition($0.counts) ? () : nil
        } seen: {
            "\($0.counts); requests: \($0.requests.all.shown())"
        }
    }
}

extension TestOrigin.Counts: ConnectionCounts {}
