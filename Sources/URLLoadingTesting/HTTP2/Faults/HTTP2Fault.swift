// SPDX-License-Identifier: Apache-2.0

// Defines faults and the functions that play them. The faults themselves are in the neighbouring files, by topic.

/// A named fault of an HTTP/2 server, with the outcome that a correct client produces.
///
/// ```swift
/// @Test(arguments: HTTP2Fault.floods + HTTP2Fault.compression)
/// func fault(_ fault: HTTP2Fault) async throws {
///     try await withHTTP2TestServer { server in
///         server.inject(fault, onConnection: 1)
///         …   // load server.url() and compare with fault.outcome
///     }
/// }
/// server.inject(.pingFlood)
/// server.inject(HTTP2Fault("mute", .stalls) { peer in try await peer.hold() })
/// ```
///
/// Each fault waits for one request (a GET unless its documentation says otherwise), misbehaves, and answers further
/// requests on the connection with 200 and the body `ok`. Faults that a client may tolerate answer the first request
/// too, so that a tolerant client succeeds. Faults that end a connection need another one for the retry: apply them to
/// connection 1 only, and add a route for the others.
public struct HTTP2Fault: Sendable, CustomStringConvertible {
    /// A short description, which identifies the fault.
    public let name: String
    /// The outcome that a correct client produces.
    public let outcome: Outcome
    /// The script that the server runs.
    public let script: HTTP2TestServer.Script

    /// The outcome of the request for a client that conforms to RFC 9113 and defends itself.
    public enum Outcome: Sendable, Hashable {
        /// The request succeeds as if nothing were wrong: 200 with `ok`.
        case succeeds
        /// The request fails, and the client ends the connection with a GOAWAY of one of these codes; an empty list
        /// permits any.
        case connectionFails([HTTP2Frame.ErrorCode] = [])
        /// The request fails, with RST_STREAM of one of these codes, or as in ``connectionFails(_:)``: a stream error
        /// may always be treated as a connection error (§5.4.2). An empty list permits any code, or none.
        case streamFails([HTTP2Frame.ErrorCode] = [])
        /// The request was not processed, so the client retries it, on this connection or another.
        case retries
        /// No response arrives; the load ends with a timeout or cancellation.
        case stalls
        /// The load succeeds or fails, but soon and without much memory.
        case ends
    }

    /// Creates a fault of your own.
    public init(_ name: String, _ outcome: Outcome, script: @escaping HTTP2TestServer.Script) {
        self.name = name
        self.outcome = outcome
        self.script = script
    }

    /// The fault's name.
    public var description: String { name }

    /// All faults of this library, to be run one by one.
    public static let all =
        floods + compression + fields + messages + frames + streams + windows + settings + endings + oddities

    /// Returns the fault of that name; `nil` if there is none.
    public static func named(_ name: String) -> HTTP2Fault? { all.first { $0.name == name } }
}

extension HTTP2Fault {
    static let answer = Array("ok".utf8)

    /// Misbehaves after the request, and then answers it.
    static func before(
        _ name: String, _ outcome: Outcome, _ act: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) -> HTTP2Fault {
        instead(name, outcome) { peer, stream in
            try await act(peer, stream)
            try await peer.respond(to: stream, body: answer)
        }
    }

    /// Misbehaves instead of answering.
    static func instead(
        _ name: String, _ outcome: Outcome, _ act: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) -> HTTP2Fault {
        HTTP2Fault(name, outcome) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await act(peer, request.stream)
            try await peer.serveOn(from: request)
        }
    }

    /// Sends these frames after the request, and then answers it.
    static func frames(_ name: String, _ outcome: Outcome, _ make: @escaping @Sendable (Int) -> [HTTP2Frame])
        -> HTTP2Fault
    {
        before(name, outcome) { peer, stream in try await peer.send(make(stream)) }
    }
}

extension HTTP2Peer {
    /// Answers all further requests with `ok`, returns flow-control credit, and ends when the client has closed.
    func serveOn(from first: Request? = nil) async throws(Failure) {
        var answered = first.map { Set([$0.stream]) } ?? []
        while true {
            let arrival = try await arrival()
            let frame = arrival.frame
            if frame.kind == .data, !frame.payload.isEmpty {
                try await send(.windowUpdate(frame.payload.count))
                if !frame.endsStream { try await send(.windowUpdate(stream: frame.stream, frame.payload.count)) }
            }
            if arrival.fields != nil || frame.endsStream, answered.insert(frame.stream).inserted {
                try await respond(to: frame.stream, body: HTTP2Fault.answer)
            }
            try await answerControl(frame)
        }
    }

    /// Sends the same frames `count` times, in writes of some kilobytes.
    func flood(_ count: Int, _ frames: [HTTP2Frame]) async throws(Failure) {
        let once = frames.flatMap(\.bytes)
        let atATime = max(1, 32 * 1024 / max(1, once.count))
        let block = (0..<min(count, atATime)).flatMap { _ in once }
        var left = count
        while left > 0 {
            let now = min(left, atATime)
            left -= now
            try await sendRaw(now == atATime ? block : Array(block.prefix(now * once.count)))
        }
    }
}
