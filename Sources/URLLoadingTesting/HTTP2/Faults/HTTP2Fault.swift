// Misbehaviours with names. What must live here: what a fault is and how most of them are played. The faults themselves
// are in the files beside this one, sorted by what goes wrong.

/// A way to misbehave on an HTTP/2 connection, with a name and with what a good client makes of it.
///
/// ```swift
/// @Test(arguments: HTTP2Fault.floods + HTTP2Fault.compression)
/// func fault(_ fault: HTTP2Fault) async throws {
///     try await withHTTP2TestServer { server in
///         server.misbehave(fault, onConnection: 1)
///         …   // load server.url() and compare with fault.outcome
///     }
/// }
/// server.misbehave(.pingFlood)
/// server.misbehave(HTTP2Fault("mute", .stalls) { peer in try await peer.hold() })
/// ```
///
/// Each waits for one request (a GET unless its documentation says otherwise), misbehaves, and answers further requests
/// of the connection with 200 and the body `ok`. One that a client may put up with answers that one too, so a client
/// that notices nothing is seen to succeed. Faults that end a connection need another one to be retried on: give them
/// connection 1 alone, and a route to the others.
public struct HTTP2Fault: Sendable, CustomStringConvertible {
    /// In a few words.
    public let name: String
    /// What a good client makes of it.
    public let outcome: Outcome
    /// What the server does.
    public let script: HTTP2TestServer.Script

    /// What becomes of the request, for a client that keeps to RFC 9113 and defends itself.
    public enum Outcome: Sendable, Hashable {
        /// The answer comes as if nothing were wrong: 200 with `ok`.
        case succeeds
        /// The request fails, and the connection ends with a GOAWAY of one of these codes; any, if there are none.
        case connectionFails([HTTP2Frame.ErrorCode] = [])
        /// The request fails, with RST_STREAM of one of these codes or as by ``connectionFails(_:)``; a stream error may
        /// always be treated as one of the connection (5.4.2). No codes: any, or silently.
        case streamFails([HTTP2Frame.ErrorCode] = [])
        /// The request was not processed, so it is sent again, on this connection or on another.
        case retries
        /// Nothing more comes: it ends by a time-out or by its caller.
        case stalls
        /// Well or badly, but soon and without much memory.
        case ends
    }

    /// A fault of one's own.
    public init(_ name: String, _ outcome: Outcome, script: @escaping HTTP2TestServer.Script) {
        self.name = name
        self.outcome = outcome
        self.script = script
    }

    /// Its name.
    public var description: String { name }

    /// All that are here, to be run one by one.
    public static let all =
        floods + compression + fields + messages + frames + streams + windows + settings + endings + oddities

    /// The one of that name; `nil` if there is none.
    public static func named(_ name: String) -> HTTP2Fault? { all.first { $0.name == name } }
}

extension HTTP2Fault {
    static let answer = Array("ok".utf8)

    /// Misbehaves after the request, and answers it all the same.
    static func before(
        _ name: String, _ outcome: Outcome, _ act: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) -> HTTP2Fault {
        instead(name, outcome) { peer, stream in
            try await act(peer, stream)
            try await peer.respond(to: stream, body: answer)
        }
    }

    /// Misbehaves in place of an answer.
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

    /// Sends these frames after the request, and answers it all the same.
    static func frames(_ name: String, _ outcome: Outcome, _ make: @escaping @Sendable (Int) -> [HTTP2Frame])
        -> HTTP2Fault
    {
        before(name, outcome) { peer, stream in try await peer.send(make(stream)) }
    }
}

extension HTTP2Peer {
    /// Answers whatever else comes with `ok`, gives windows back, and returns when the client has left.
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

    /// The same frames over and over, in writes of some kilobytes.
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
