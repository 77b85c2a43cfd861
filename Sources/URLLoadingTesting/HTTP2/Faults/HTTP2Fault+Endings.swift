// SPDX-License-Identifier: Apache-2.0

// Ends of a stream or of the connection, at every point and for every reason (RFC 9113 §5.4, §6.4, §6.8, §8.7).

import URLLoadingWire

extension HTTP2Fault {
    /// All faults that end a stream or connection. Those with outcome `retries` need a route for the second connection.
    public static let endings: [HTTP2Fault] = goAways + resets + closings

    /// GOAWAY at every point.
    public static let goAways: [HTTP2Fault] = [
        HTTP2Fault("GOAWAY before SETTINGS", .ends) { peer in
            try await peer.goAway(last: 0)
            peer.finish()
            await peer.untilClosed()
        },
        HTTP2Fault("GOAWAY at once", .retries) { peer in
            try await peer.send(.settings(), .goAway(last: 0))
            await peer.untilClosed()
        },
        instead("GOAWAY below the request", .retries) { peer, _ in try await peer.goAway(last: 0) },
        before("GOAWAY before the answer", .succeeds) { peer, stream in try await peer.goAway(last: stream) },
        instead("GOAWAY in the body", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: [0x6F], endStream: false)
            try await peer.goAway(last: stream)
            try await peer.ping()
            try await peer.data(stream, [0x6B], endStream: true)
        },
        instead("GOAWAY after the answer", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer)
            try await peer.goAway(last: stream)
        },
        instead("GOAWAY with an error in the body", .streamFails()) { peer, stream in
            try await peer.respond(to: stream, body: [0x6F], endStream: false)
            try await peer.goAway(last: stream, .internalError, debug: "out of order")
            peer.finish()
        },
        before("GOAWAY twice, lower", .succeeds) { peer, stream in
            try await peer.goAway(last: 0x7FFF_FFFF)
            try await peer.ping()
            try await peer.goAway(last: stream)
        },
        instead("GOAWAY twice, then below the request", .retries) { peer, _ in
            try await peer.goAway(last: 0x7FFF_FFFF)
            try await peer.ping()
            try await peer.goAway(last: 0)
        },
        before("GOAWAY twice, higher", .ends) { peer, stream in
            try await peer.goAway(last: stream)
            try await peer.goAway(last: stream + 100)
        },
        instead("GOAWAY to be calm", .ends) { peer, _ in try await peer.goAway(last: 0, .enhanceYourCalm) },
        before("GOAWAY for streams of the server's", .ends) { peer, stream in try await peer.goAway(last: stream + 1) },
    ]

    /// RST_STREAM, and statuses that ask for a retry on another connection.
    public static let resets: [HTTP2Fault] = [
        instead("REFUSED_STREAM", .retries) { peer, stream in try await peer.reset(stream, .refusedStream) },
        HTTP2Fault("REFUSED_STREAM always", .streamFails()) { peer in
            try await peer.start()
            while true { try await peer.reset(try await peer.expectRequest().stream, .refusedStream) }
        },
        instead("CANCEL", .streamFails()) { peer, stream in try await peer.reset(stream, .cancel) },
        instead("INTERNAL_ERROR", .streamFails()) { peer, stream in try await peer.reset(stream, .internalError) },
        instead("an unknown error code", .streamFails()) { peer, stream in
            try await peer.reset(stream, .init(rawValue: 0xDEAD_BEEF))
        },
        instead("HTTP_1_1_REQUIRED", .ends) { peer, stream in try await peer.reset(stream, .http11Required) },
        instead("NO_ERROR before an answer", .streamFails()) { peer, stream in try await peer.reset(stream, .noError) },
        instead("NO_ERROR in the body", .streamFails()) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
            try await peer.reset(stream, .noError)
        },
        instead("NO_ERROR after the answer", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer)
            try await peer.reset(stream, .noError)
        },
        instead("CANCEL in the body", .streamFails()) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
            try await peer.reset(stream, .cancel)
        },
        instead("REFUSED_STREAM in the body", .streamFails()) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
            try await peer.reset(stream, .refusedStream)
        },
        instead("421", .retries) { peer, stream in try await peer.respond(to: stream, .misdirectedRequest) },
    ]

    /// A connection that closes or stalls.
    public static let closings: [HTTP2Fault] = [
        HTTP2Fault("closed at once", .ends) { _ in },
        HTTP2Fault("reset at once", .ends) { peer in peer.abort() },
        closing("closed after the request", .ends) { _, _ in },
        closing("closed in a field section") { peer, stream in
            try await peer.send(.headers(stream: stream, status, endHeaders: false))
        },
        closing("closed after the head") { peer, stream in try await peer.respond(to: stream, endStream: false) },
        closing("closed in the body") { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
        },
        closing("closed in a frame") { peer, stream in
            try await peer.respond(to: stream, endStream: false)
            try await peer.sendRaw(Array(HTTP2Frame.data(stream: stream, answer, endStream: true).bytes.dropLast()))
        },
        closing("closed before END_STREAM, all of the length there") { peer, stream in
            try await peer.respond(to: stream, .ok, [.contentLength: "2"], body: answer, endStream: false)
        },
        HTTP2Fault("never a word", .stalls) { peer in await peer.untilClosed() },
        HTTP2Fault("never an answer", .stalls) { peer in
            try await peer.start()
            await peer.untilClosed()
        },
        HTTP2Fault("never the rest", .stalls) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await peer.respond(to: request.stream, body: [0x6F], endStream: false)
            await peer.untilClosed()
        },
    ]

    private static func closing(
        _ name: String, _ outcome: Outcome = .streamFails(),
        _ act: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) -> HTTP2Fault {
        HTTP2Fault(name, outcome) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await act(peer, request.stream)
            // Closing with unread input could destroy data that was sent.
            peer.finish()
            await peer.untilClosed()
        }
    }
}
