// SPDX-License-Identifier: Apache-2.0

// Frames that are malformed or sent in a forbidden place, streams that are not permitted, and windows.

#if HTTP3

import URLLoadingWire

extension HTTP3Fault {
    /// Frames of a wrong form, or at a place where they are forbidden (§7.2).
    public static let frames: [HTTP3Fault] = [
        message("SETTINGS on a request's stream", unexpected, [.settings()]),
        message("GOAWAY on a request's stream", unexpected, [.goAway(from: 0)]),
        message("MAX_PUSH_ID on a request's stream", unexpected, [HTTP3Frame(.maxPushID, payload: [1])]),
        message("PING of HTTP/2", unexpected, [HTTP3Frame(.init(rawValue: 6), payload: [0, 0, 0, 0, 0, 0, 0, 0])]),
        control("DATA on the control stream", unexpected, .data(answer)),
        control("HEADERS on the control stream", unexpected, .headers(status)),
        control("SETTINGS again", unexpected, .settings()),
        control("MAX_PUSH_ID of a server", unexpected, HTTP3Frame(.maxPushID, payload: [1])),
        control("WINDOW_UPDATE of HTTP/2", unexpected, HTTP3Frame(.init(rawValue: 8), payload: [0, 0, 0, 1])),
        control("GOAWAY of no bytes", .connectionFails([.frameError]), HTTP3Frame(.goAway)),
        control(
            "GOAWAY with bytes behind its number", .connectionFails([.frameError]),
            HTTP3Frame(.goAway, payload: [4, 0])),
        control("GOAWAY for a stream of the server's", .connectionFails([.idError]), .goAway(from: 5)),
        control(
            "GOAWAY twice, higher", .connectionFails([.idError]), .goAway(from: 4), .goAway(from: 400)),
        instead("PUSH_PROMISE without MAX_PUSH_ID", .connectionFails([.idError, .frameUnexpected])) { peer, stream in
            try await peer.send(
                HTTP3Frame(.pushPromise, payload: [0] + QPACK.section(pushed)), .headers(status), .data(answer),
                on: stream, endStream: true)
        },
        instead("a frame that the stream cuts off", .connectionFails([.frameError])) { peer, stream in
            try await peer.send(.headers(status), on: stream)
            try await peer.sendRaw(Array(HTTP3Frame.data(answer).bytes.dropLast()), on: stream, endStream: true)
        },
        instead("a length that the stream cuts off", .connectionFails([.frameError])) { peer, stream in
            try await peer.send(.headers(status), on: stream)
            try await peer.sendRaw([0, 0x40], on: stream, endStream: true)
        },
        instead("an answer of HTTP/1.1", .connectionFails()) { peer, stream in
            try await peer.sendRaw(
                Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), on: stream, endStream: true)
        },
        settings("SETTINGS of HTTP/2", .connectionFails([.settingsError]), [.init(4, 65_535)]),
        settings("a setting twice", .ends, [.init(6, 10_000), .init(6, 20_000)]),
        first("GOAWAY before SETTINGS", .connectionFails([.missingSettings]), HTTP3Frame.goAway(from: 0).bytes),
        first("SETTINGS that are cut off", .connectionFails([.frameError]), [4, 1, 6]),
        first("an unknown frame before SETTINGS", .connectionFails([.missingSettings]), [0x21, 0]),
    ]

    /// Streams that a server may not open or end (§6.2).
    public static let streams: [HTTP3Fault] = [
        another("a second control stream", 0), another("a second encoder stream", 2),
        another("a second decoder stream", 3),
        before("a push that was not permitted", .connectionFails([.idError, .streamCreationError])) { peer, _ in
            let stream = try await peer.openStream(type: 1)
            try await peer.sendRaw([0], on: stream, endStream: true)
        },
        closed("the end of the control stream") { try await $0.control() },
        closed("the end of the encoder stream") { try await $0.qpackStreams().encoder },
        closed("the end of the decoder stream") { try await $0.qpackStreams().decoder },
        instead("a reset of the control stream", .connectionFails([.closedCriticalStream])) { peer, _ in
            let control = try await peer.control()
            // A reset that overtakes the type ends a stream of which the client does not know what it was.
            await peer.drain()
            peer.reset(control, .noError)
        },
        instead("a control stream that the client shall not send", .connectionFails([.closedCriticalStream])) {
            peer, _ in
            peer.stopReceiving(2, .noError)
        },
    ]

    /// Windows that are opened late, or never. They await a request with a body of more than 256 KiB.
    public static let windows: [HTTP3Fault] = [
        HTTP3Fault("a window that never opens", .stalls) { peer in
            peer.enlargesWindows = false
            try await peer.start()
            await peer.untilClosed()
        },
        HTTP3Fault("a window that opens late", .succeeds) { peer in
            peer.enlargesWindows = false
            try await peer.start()
            let request = try await peer.expectRequest()
            try await peer.pause(.milliseconds(50))
            peer.enlargesWindows = true
            _ = try await peer.expectBody(of: request.stream)
            try await peer.respond(to: request.stream, body: answer)
            try await peer.serveOn(from: request.stream)
        },
        // §4.1: the response is complete, whatever of the request was sent.
        HTTP3Fault("a window that never opens, but an answer", .succeeds) { peer in
            peer.enlargesWindows = false
            try await peer.start()
            let request = try await peer.expectRequest()
            try await peer.respond(to: request.stream, body: answer)
            peer.stopReceiving(request.stream, .noError)
            peer.enlargesWindows = true
            try await peer.serveOn(from: request.stream)
        },
    ]

    private static let pushed: HTTP2Fields = [
        ":method": "GET", ":scheme": "https", ":path": "/pushed", ":authority": "localhost",
    ]

    /// Opens the connection with these SETTINGS.
    private static func settings(
        _ name: String, _ outcome: Outcome, _ settings: [HTTP3Frame.Setting]
    ) -> HTTP3Fault {
        HTTP3Fault(name, outcome) { peer in
            try await peer.start(settings)
            try await peer.serveOn()
        }
    }

    /// Sends these bytes on the control stream in place of SETTINGS.
    private static func first(_ name: String, _ outcome: Outcome, _ bytes: [UInt8]) -> HTTP3Fault {
        HTTP3Fault(name, outcome) { peer in
            try await peer.sendRaw([0] + bytes, on: try await peer.control())
            await peer.untilClosed()
        }
    }

    /// Opens a stream of a type of which there may be one.
    private static func another(_ name: String, _ type: UInt64) -> HTTP3Fault {
        instead(name, .connectionFails([.streamCreationError])) { peer, _ in _ = try await peer.openStream(type: type) }
    }

    private static func closed(
        _ name: String, _ stream: @escaping @Sendable (HTTP3Peer) async throws -> Int
    ) -> HTTP3Fault {
        instead(name, .connectionFails([.closedCriticalStream])) { peer, _ in
            try await peer.sendRaw([], on: try await stream(peer), endStream: true)
        }
    }
}

#endif
