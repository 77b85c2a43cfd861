// SPDX-License-Identifier: Apache-2.0

// In this folder: what a peer of HTTP/3 may do wrong, in builds with the trait

// Defines faults and the functions that play them. The faults themselves are in the neighbouring files, by topic.

#if HTTP3

import URLLoadingWire

/// A named fault of an HTTP/3 server, with the outcome that a correct client produces.
///
/// ```swift
/// @Test(arguments: HTTP3Fault.floods + HTTP3Fault.compression)
/// func fault(_ fault: HTTP3Fault) async throws {
///     try await withHTTP3TestServer(.init(identity)) { server in
///         server.inject(fault, onConnection: 1)
///         …   // load server.url() and compare with fault.outcome
///     }
/// }
/// server.inject(.pingFlood)
/// server.inject(HTTP3Fault("mute", .stalls) { peer in try await peer.hold() })
/// ```
///
/// Each fault waits for one request (a GET unless its documentation says otherwise), misbehaves, and answers further
/// requests on the connection with 200 and the body `ok`. Faults that a client may tolerate answer the first request
/// too, so that a tolerant client succeeds. Faults that end a connection need another one for the retry: apply them to
/// connection 1 only, and add a route for the others.
///
/// QUIC itself keeps its rules in all of them. For datagrams that are lost or damaged, see ``DatagramFaults``.
public struct HTTP3Fault: Sendable, CustomStringConvertible {
    /// A short description, which identifies the fault.
    public let name: String
    /// The outcome that a correct client produces.
    public let outcome: Outcome
    /// The script that the server runs.
    public let script: HTTP3TestServer.Script

    /// The outcome of the request for a client that conforms to RFC 9114 and defends itself.
    public enum Outcome: Sendable, Hashable {
        /// The request succeeds as if nothing were wrong: 200 with `ok`.
        case succeeds
        /// The request fails, and the client closes the connection with one of these codes; an empty list permits any.
        case connectionFails([HTTP3Frame.ErrorCode] = [])
        /// The request fails, and the client ends its stream with one of these codes, or the connection as in
        /// ``connectionFails(_:)``: a stream error may always be treated as a connection error (§8). An empty list
        /// permits any code, or none.
        case streamFails([HTTP3Frame.ErrorCode] = [])
        /// The request was not processed, so the client retries it, on this connection or another.
        case retries
        /// No response arrives; the load ends with a timeout or cancellation.
        case stalls
        /// The load succeeds or fails, but soon and without much memory.
        case ends
    }

    /// Creates a fault of your own.
    public init(_ name: String, _ outcome: Outcome, script: @escaping HTTP3TestServer.Script) {
        self.name = name
        self.outcome = outcome
        self.script = script
    }

    /// The fault's name.
    public var description: String { name }

    /// All faults of this library, to be run one by one.
    public static let all =
        floods + compression + fields + messages + frames + streams + windows + endings + oddities

    /// Returns the fault of that name; `nil` if there is none.
    public static func named(_ name: String) -> HTTP3Fault? { all.first { $0.name == name } }
}

extension HTTP3Fault {
    static let answer = Array("ok".utf8)
    static let status: HTTP2Fields = [":status": "200"]

    /// Misbehaves after the request, and then answers it.
    static func before(
        _ name: String, _ outcome: Outcome, _ act: @escaping @Sendable (HTTP3Peer, Int) async throws -> Void
    ) -> HTTP3Fault {
        instead(name, outcome) { peer, stream in
            try await act(peer, stream)
            try await peer.respond(to: stream, body: answer)
        }
    }

    /// Misbehaves instead of answering.
    static func instead(
        _ name: String, _ outcome: Outcome, _ act: @escaping @Sendable (HTTP3Peer, Int) async throws -> Void
    ) -> HTTP3Fault {
        HTTP3Fault(name, outcome) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await act(peer, request.stream)
            try await peer.serveOn(from: request.stream)
        }
    }

    /// Sends these frames on the stream of the request, which ends with them.
    static func message(_ name: String, _ outcome: Outcome, _ frames: [HTTP3Frame]) -> HTTP3Fault {
        instead(name, outcome) { peer, stream in
            try await peer.sendRaw(frames.flatMap(\.bytes), on: stream, endStream: true)
        }
    }

    /// Sends these frames on the control stream, and answers once the client has received them.
    static func control(_ name: String, _ outcome: Outcome, _ frames: HTTP3Frame...) -> HTTP3Fault {
        before(name, outcome) { peer, _ in
            try await peer.sendRaw(frames.flatMap(\.bytes), on: try await peer.control())
            await peer.drain()
        }
    }
}

extension HTTP3Peer {
    /// Answers all further requests with `ok`, and ends when the client has closed.
    func serveOn(from first: Int? = nil) async throws(Failure) {
        while true {
            let arrival = try await receive()
            guard case .frame(_, _?) = arrival.content, arrival.stream != first else { continue }
            try await respond(to: arrival.stream, body: HTTP3Fault.answer)
        }
    }

    /// Sends the same frames `count` times, in pieces of some kilobytes, as the client receives them.
    func flood(_ count: Int, _ frames: [HTTP3Frame], on stream: Int) async throws(Failure) {
        let once = frames.flatMap(\.bytes)
        let atATime = max(1, 32 * 1024 / max(1, once.count))
        var left = count
        while left > 0 {
            let now = min(left, atATime)
            left -= now
            try await room(on: stream)
            try await sendRaw((0..<now).flatMap { _ in once }, on: stream)
        }
    }
}

#endif
