// SPDX-License-Identifier: Apache-2.0

// Ends of a stream or of the connection, at every point and for every reason (RFC 9114 §4.1.1, §5, §8).

#if HTTP3

import URLLoadingWire

extension HTTP3Fault {
    /// All faults that end a stream or connection. Those with outcome `retries` need a route for the second connection.
    public static let endings: [HTTP3Fault] = goAways + resets + closings

    /// GOAWAY at every point (§5.2).
    public static let goAways: [HTTP3Fault] = [
        HTTP3Fault("GOAWAY at once", .retries) { peer in
            try await peer.start()
            try await peer.send(.goAway(from: 0), on: try await peer.control())
            await peer.untilClosed()
        },
        goAway("GOAWAY below the request", .retries, [0]),
        before("GOAWAY before the answer", .succeeds) { peer, stream in try await peer.goAway(UInt64(stream) + 4) },
        instead("GOAWAY in the body", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: [0x6F], endStream: false)
            try await peer.goAway(UInt64(stream) + 4)
            await peer.drain()
            try await peer.data(stream, [0x6B], endStream: true)
        },
        instead("GOAWAY after the answer", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer)
            try await peer.goAway(UInt64(stream) + 4)
        },
        before("GOAWAY twice, lower", .succeeds) { peer, stream in
            try await peer.goAway(QUICInteger.largest & ~3)
            await peer.drain()
            try await peer.goAway(UInt64(stream) + 4)
        },
        goAway("GOAWAY twice, then below the request", .retries, [QUICInteger.largest & ~3, 0]),
        instead("GOAWAY and the end of the connection in the body", .streamFails()) { peer, stream in
            try await peer.respond(to: stream, body: [0x6F], endStream: false)
            try await peer.goAway(UInt64(stream) + 4)
            await peer.drain()
            peer.close(.internalError)
        },
    ]

    /// Ends of the request's stream, and statuses that ask for a retry on another connection.
    public static let resets: [HTTP3Fault] = [
        reset("H3_REQUEST_REJECTED", .retries, .requestRejected),
        HTTP3Fault("H3_REQUEST_REJECTED always", .streamFails()) { peer in
            try await peer.start()
            while true { peer.reset(try await peer.expectRequest().stream, .requestRejected) }
        },
        reset("H3_REQUEST_CANCELLED", .streamFails(), .requestCancelled),
        reset("H3_INTERNAL_ERROR", .streamFails(), .internalError),
        reset("an unknown error code", .streamFails(), .init(rawValue: 0xDEAD_BEEF)),
        reset("the largest error code", .streamFails(), .init(rawValue: QUICInteger.largest)),
        reset("H3_VERSION_FALLBACK", .ends, .versionFallback),
        reset("H3_NO_ERROR before an answer", .streamFails(), .noError),
        reset("H3_NO_ERROR in the head", .streamFails(), .noError) { peer, stream in
            try await peer.sendRaw(Array(HTTP3Frame.headers(status).bytes.dropLast()), on: stream)
        },
        reset("H3_NO_ERROR after the head", .streamFails(), .noError) { peer, stream in
            try await peer.respond(to: stream, endStream: false)
        },
        reset("H3_NO_ERROR in the body", .streamFails(), .noError) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
        },
        reset("H3_REQUEST_CANCELLED in the body", .streamFails(), .requestCancelled) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
        },
        reset("H3_REQUEST_REJECTED in the body", .streamFails(), .requestRejected) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
        },
        before("no more of the request", .succeeds) { peer, stream in peer.stopReceiving(stream, .noError) },
        instead("no more of the request after the answer", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer)
            peer.stopReceiving(stream, .noError)
        },
        instead("421", .ends) { peer, stream in try await peer.respond(to: stream, .misdirectedRequest) },
    ]

    /// A connection that closes or stalls.
    public static let closings: [HTTP3Fault] = [
        HTTP3Fault("closed at once", .ends) { peer in _ = try await peer.control() },
        closing("closed after the request", .ends, .noError) { _, _ in },
        closing("closed with H3_INTERNAL_ERROR", .ends, .internalError) { _, _ in },
        closing("closed with H3_EXCESSIVE_LOAD", .ends, .excessiveLoad) { _, _ in },
        instead("closed with an error of QUIC", .ends) { peer, _ in peer.closeTransport(0x0A) },
        closing("closed in the head", .ends, .noError) { peer, stream in
            try await peer.sendRaw(Array(HTTP3Frame.headers(status).bytes.dropLast()), on: stream)
        },
        closing("closed after the head", .streamFails(), .noError) { peer, stream in
            try await peer.respond(to: stream, endStream: false)
        },
        closing("closed in the body", .streamFails(), .noError) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
        },
        closing("closed before the end, all of the length there", .streamFails(), .noError) { peer, stream in
            try await peer.respond(to: stream, .ok, [.contentLength: "2"], body: answer, endStream: false)
        },
        HTTP3Fault("silent from the beginning", .stalls) { peer in
            peer.fallSilent()
            await peer.untilClosed()
        },
        HTTP3Fault("silent after the request", .stalls) { peer in
            try await peer.start()
            _ = try await peer.expectRequest()
            peer.fallSilent()
            await peer.untilClosed()
        },
        HTTP3Fault("silent in the body", .stalls) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await peer.respond(to: request.stream, body: [0x6F], endStream: false)
            await peer.drain()
            peer.fallSilent()
            await peer.untilClosed()
        },
        HTTP3Fault("never a word", .stalls) { peer in await peer.untilClosed() },
        HTTP3Fault("never an answer", .stalls) { peer in
            try await peer.start()
            await peer.untilClosed()
        },
        HTTP3Fault("never the rest", .stalls) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await peer.respond(to: request.stream, body: [0x6F], endStream: false)
            await peer.untilClosed()
        },
    ]

    private static func goAway(_ name: String, _ outcome: Outcome, _ numbers: [UInt64]) -> HTTP3Fault {
        instead(name, outcome) { peer, _ in
            for number in numbers {
                try await peer.goAway(number)
                await peer.drain()
            }
        }
    }

    private static func reset(
        _ name: String, _ outcome: Outcome, _ code: HTTP3Frame.ErrorCode,
        _ act: @escaping @Sendable (HTTP3Peer, Int) async throws -> Void = { _, _ in }
    ) -> HTTP3Fault {
        instead(name, outcome) { peer, stream in
            try await act(peer, stream)
            // A reset overtakes what was not received.
            await peer.drain()
            peer.reset(stream, code)
        }
    }

    private static func closing(
        _ name: String, _ outcome: Outcome, _ code: HTTP3Frame.ErrorCode,
        _ act: @escaping @Sendable (HTTP3Peer, Int) async throws -> Void
    ) -> HTTP3Fault {
        HTTP3Fault(name, outcome) { peer in
            try await peer.start()
            let request = try await peer.expectRequest()
            try await act(peer, request.stream)
            await peer.drain()
            peer.close(code)
        }
    }
}

extension HTTP3Peer {
    /// Sends GOAWAY: requests from this stream on were not processed.
    fileprivate func goAway(_ stream: UInt64) async throws(Failure) {
        try await send(.goAway(from: stream), on: try await control())
    }
}

#endif
