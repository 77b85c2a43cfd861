// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
public import URLLoadingWire

extension HTTPTestServer {
    /// A received request.
    public struct RecordedRequest: Sendable, CustomStringConvertible {
        /// The method.
        public let method: Method
        /// The request target as sent.
        public let target: String
        /// The HTTP version stated by the client.
        public let version: HTTPVersion
        /// The fields.
        public let headers: Headers
        /// The body, up to ``HTTPTestServer/Configuration/recordedBodySize``. Empty if the route does not read bodies.
        public internal(set) var body: [UInt8] = []
        /// The length of the body in bytes, whether kept or not.
        public internal(set) var bodyCount: Int64 = 0
        /// The trailers of a chunked body.
        public internal(set) var trailers = Headers()
        /// The number of the connection, from 1 in order of acceptance.
        public let connection: Int
        /// The number of the request on that connection, from 1.
        public let exchange: Int
        /// The parameters of the TLS handshake; `nil` in cleartext.
        public let tls: TLSInfo?

        /// The path: the target up to its `?`.
        public var path: String { String(target.prefix { $0 != "?" }) }

        /// The request line.
        public var description: String {
            "\(method) \(target) \(version) on connection \(connection), exchange \(exchange)"
        }
    }

    /// The parameters of a TLS handshake.
    public struct TLSInfo: Sendable, Hashable {
        /// `TLSv1.2` or `TLSv1.3`.
        public let version: String
        /// OpenSSL's name of the cipher suite.
        public let cipher: String
        /// The protocol selected by ALPN, if any.
        public let applicationProtocol: String?
        /// The server name requested by the client (SNI), if any.
        public let serverName: String?
        /// The subject of the client's certificate; `nil` if none was requested or presented.
        public let clientSubject: String?
        /// Whether the client resumed a session.
        public let isResumed: Bool

        init(_ negotiated: TLSNegotiated) {
            version = negotiated.version.name.replacing("TLS ", with: "TLSv")
            cipher = negotiated.cipher
            applicationProtocol = negotiated.applicationProtocol
            serverName = negotiated.serverName
            clientSubject = negotiated.clientSubject
            isResumed = negotiated.isResumed
        }
    }

    /// The current counters.
    public var counts: TestServerCounts { recordedCounts }

    /// The requests that were read completely or answered, oldest first, at most ``Configuration/recordedRequests``.
    public var requests: [RecordedRequest] { recordedRequests }

    /// Waits until the counters fulfil a condition, so that tests need not guess how long things take.
    ///
    /// ```swift
    /// try await origin.wait { $0.stalled == 1 }   // the client now waits for an answer
    /// task.cancel()
    /// try await origin.wait { $0.open == 0 }      // its socket is closed
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
        try await wait(WaitLimit(limit, "the counts of the origin", file, line), until: condition)
    }
}
