// SPDX-License-Identifier: Apache-2.0

// Floods of legal frames, each cheap to send and costly to process (RFC 9114 §10.5).

#if HTTP3

import URLLoadingWire

extension HTTP3Fault {
    /// Floods. Each one is finite; a client that processes one to its end receives `ok` after it.
    public static let floods: [HTTP3Fault] = [
        emptyDataFlood, unknownFrameFlood, controlFlood, interimFlood, pingFlood, goAwayFlood, instructionFlood,
        largeHead, manyFields, largeUnknownFrame,
    ]

    /// 100,000 DATA frames without data.
    public static let emptyDataFlood = instead("empty DATA flood", .connectionFails([.excessiveLoad])) { peer, stream in
        try await peer.respond(to: stream, endStream: false)
        try await peer.flood(100_000, [.data([])], on: stream)
        try await peer.data(stream, answer, endStream: true)
    }

    /// 100,000 frames of an unknown type on the stream of the request.
    public static let unknownFrameFlood = before(
        "flood of unknown frames", .connectionFails([.excessiveLoad])
    ) { peer, stream in try await peer.flood(100_000, [HTTP3Frame(.init(rawValue: 0x21))], on: stream) }

    /// 100,000 frames of an unknown type on the control stream.
    public static let controlFlood = instead(
        "flood of unknown frames on the control stream", .connectionFails([.excessiveLoad])
    ) { peer, stream in
        try await peer.flood(100_000, [HTTP3Frame(.init(rawValue: 0x21))], on: try await peer.control())
        // The answer would overtake it.
        await peer.drain()
        try await peer.respond(to: stream, body: answer)
    }

    /// 10,000 interim responses.
    public static let interimFlood = before("103 flood", .streamFails()) { peer, stream in
        try await peer.flood(10_000, [.headers([":status": "103"])], on: stream)
    }

    /// A PING after each 20 microseconds, for thirty seconds at most.
    public static let pingFlood = instead("PING flood", .connectionFails()) { peer, stream in
        peer.ping(each: .microseconds(20))
        try await peer.pause(.seconds(30))
        peer.ping(each: nil)
        try await peer.respond(to: stream, body: answer)
    }

    /// 100,000 times the same GOAWAY.
    public static let goAwayFlood = before("GOAWAY flood", .ends) { peer, stream in
        try await peer.flood(100_000, [.goAway(from: UInt64(stream) + 4)], on: try await peer.control())
    }

    /// 100,000 duplicates of an entry of the table.
    public static let instructionFlood = before("flood of instructions", .connectionFails()) { peer, _ in
        let encoder = try await peer.qpackStreams().encoder
        try await peer.sendEncoder(QPACK.capacity(220) + QPACK.insert(.init("x", "y")))
        for _ in 0..<100 {
            try await peer.room(on: encoder)
            try await peer.sendRaw((0..<10_000).flatMap { _ in QPACK.duplicate(0) }, on: encoder)
        }
    }

    /// A head of one field with a value of 200,000 bytes.
    public static let largeHead = message(
        "a head of 200,000 bytes", .streamFails(),
        [.headers(status + HTTP2Fields([.init("x", String(repeating: "a", count: 200_000))])), .data(answer)])

    /// A head of 10,000 fields.
    public static let manyFields = message(
        "a head of 10,000 fields", .streamFails(),
        [.headers(status + HTTP2Fields((0..<10_000).map { .init("x\($0)", "") })), .data(answer)])

    /// A frame of an unknown type with 1 MiB.
    public static let largeUnknownFrame = before("an unknown frame of 1 MiB", .ends) { peer, stream in
        try await peer.send(
            HTTP3Frame(.init(rawValue: 0x21), payload: [UInt8](repeating: 0, count: 1 << 20)), on: stream)
    }
}

#endif
