// SPDX-License-Identifier: Apache-2.0

// Frames that are malformed, or sent in a forbidden place.

extension HTTP2Fault {
    /// Frames of a wrong length or form (RFC 9113 §4.2, §6).
    public static let frames: [HTTP2Fault] = [
        frames("SETTINGS of 5 bytes", size) { _ in [HTTP2Frame(.settings, payload: [0, 3, 0, 0, 0])] },
        frames("SETTINGS with ACK and a payload", size) { _ in
            [HTTP2Frame(.settings, flags: .ack, payload: [0, 3, 0, 0, 0, 1])]
        },
        frames("PING of 7 bytes", size) { _ in [.ping([1, 2, 3, 4, 5, 6, 7])] },
        frames("WINDOW_UPDATE of 3 bytes", size) { _ in [HTTP2Frame(.windowUpdate, payload: [0, 0, 1])] },
        frames("RST_STREAM of 3 bytes", size) { [HTTP2Frame(.resetStream, stream: $0, payload: [0, 0, 1])] },
        frames("GOAWAY of 7 bytes", size) { _ in [HTTP2Frame(.goAway, payload: [0, 0, 0, 0, 0, 0, 0])] },
        frames("PRIORITY of 4 bytes", .ends) { [HTTP2Frame(.priority, stream: $0, payload: [0, 0, 0, 0])] },
        frames("padding longer than DATA", violation) {
            [.headers(stream: $0, status), HTTP2Frame(.data, flags: .padded, stream: $0, payload: [9, 1, 2])]
        },
        frames("padding longer than HEADERS", violation) {
            [HTTP2Frame(.headers, flags: [.padded, .endHeaders], stream: $0, payload: [200] + status)]
        },
        frames("DATA with a flag for padding and none", .connectionFails([.protocolError, .frameSizeError])) {
            [.headers(stream: $0, status), HTTP2Frame(.data, flags: .padded, stream: $0)]
        },
        tooLarge("DATA beyond the largest frame", .streamFails([.frameSizeError])) { HTTP2Frame.data(stream: $0, $1) },
        tooLarge("HEADERS beyond the largest frame", size) { stream, bytes in
            .headers(stream: stream, status + HPACK.field(.init("x", String(decoding: bytes, as: UTF8.self))))
        },
        tooLarge("an unknown frame beyond the largest", size) {
            HTTP2Frame(.init(rawValue: 0xFA), stream: $0, payload: $1)
        },
        frames("a frame of 16 MiB that never comes", size) { stream in
            var frame = HTTP2Frame(.headers, flags: .endHeaders, stream: stream, payload: status)
            frame.declaredLength = 0xFF_FFFF
            return [frame]
        },
        instead("an answer of HTTP/1.1", .connectionFails()) { peer, _ in
            try await peer.sendRaw(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
        },
        HTTP2Fault("HTTP/1.1 from the beginning", .connectionFails()) { peer in
            try await peer.sendRaw(
                Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n".utf8))
            await peer.untilClosed()
        },
        HTTP2Fault("garbage from the beginning", .connectionFails()) { peer in
            try await peer.sendRaw((0..<1_000).map { UInt8(truncatingIfNeeded: 0x80 &+ $0 &* 37) })
            await peer.untilClosed()
        },
    ]

    /// Frames on streams where they are forbidden (RFC 9113 §5.1, §6).
    public static let streams: [HTTP2Fault] = [
        frames("DATA on stream 0", violation) { _ in [.data(stream: 0, answer)] },
        frames("HEADERS on stream 0", violation) { _ in [.headers(stream: 0, status)] },
        frames("CONTINUATION on stream 0", violation) { _ in [.continuation(stream: 0, status)] },
        frames("RST_STREAM on stream 0", violation) { _ in [.resetStream(0)] },
        frames("PRIORITY on stream 0", violation) { _ in [.priority(stream: 0)] },
        frames("PUSH_PROMISE on stream 0", violation) { _ in [.pushPromise(stream: 0, promised: 2, status)] },
        frames("SETTINGS on a stream", violation) { [HTTP2Frame(.settings, stream: $0)] },
        frames("PING on a stream", violation) {
            [HTTP2Frame(.ping, stream: $0, payload: [UInt8](repeating: 0, count: 8))]
        },
        frames("GOAWAY on a stream", violation) {
            [HTTP2Frame(.goAway, stream: $0, payload: [UInt8](repeating: 0, count: 8))]
        },
        frames("DATA on an idle stream", violation) { [.data(stream: $0 + 98, answer)] },
        frames("HEADERS on an idle stream", violation) { [.headers(stream: $0 + 98, status, endStream: true)] },
        frames("RST_STREAM on an idle stream", violation) { [.resetStream($0 + 98)] },
        frames("WINDOW_UPDATE on an idle stream", violation) { [.windowUpdate(stream: $0 + 98, 1)] },
        frames("HEADERS on a stream of the server's own", violation) { _ in
            [.headers(stream: 2, status, endStream: true)]
        },
        frames("CONTINUATION after nothing", violation) { [.continuation(stream: $0, status)] },
        instead("PING in a field section", violation) { peer, stream in
            try await peer.send(
                .headers(stream: stream, status, endHeaders: false), .ping(), .continuation(stream: stream, []))
            try await peer.data(stream, answer, endStream: true)
        },
        instead("CONTINUATION on another stream", violation) { peer, stream in
            try await peer.send(
                .headers(stream: stream, status, endHeaders: false), .continuation(stream: stream + 2, []))
        },
        instead("HEADERS in a field section", violation) { peer, stream in
            try await peer.send(.headers(stream: stream, status, endHeaders: false), .headers(stream: stream, status))
        },
        after("DATA on a closed stream") { [.data(stream: $0, answer, endStream: true)] },
        after("HEADERS on a closed stream") { [.headers(stream: $0, status, endStream: true)] },
        frames("an unsolicited PUSH_PROMISE", violation) { [.pushPromise(stream: $0, promised: 2, pushed)] },
        frames("PUSH_PROMISE of a stream of the client's", violation) {
            [.pushPromise(stream: $0, promised: 99, pushed)]
        },
        frames("PUSH_PROMISE on an idle stream", violation) { [.pushPromise(stream: $0 + 98, promised: 2, pushed)] },
    ]

    static let violation = Outcome.connectionFails([.protocolError])
    private static let size = Outcome.connectionFails([.frameSizeError])
    private static let pushed: [UInt8] = {
        let fields: HTTP2Fields = [":method": "GET", ":scheme": "http", ":path": "/pushed", ":authority": "localhost"]
        return fields.encoded()
    }()

    /// Sends a frame one byte larger than the client's limit.
    private static func tooLarge(
        _ name: String, _ outcome: Outcome, _ make: @escaping @Sendable (Int, [UInt8]) -> HTTP2Frame
    ) -> HTTP2Fault {
        HTTP2Fault(name, outcome) { peer in
            let theirs = try await peer.start()
            let limit = theirs.last { $0.identifier == 5 }.map { Int($0.value) } ?? 16_384
            let request = try await peer.expectRequest()
            let frame = make(request.stream, [UInt8](repeating: 0x61, count: limit + 1))
            if frame.kind == .data { try await peer.respond(to: request.stream, endStream: false) }
            try await peer.send(frame)
            try await peer.serveOn(from: request)
        }
    }

    /// Sends the complete response, then frames that are forbidden after it.
    private static func after(_ name: String, _ make: @escaping @Sendable (Int) -> [HTTP2Frame]) -> HTTP2Fault {
        instead(name, .ends) { peer, stream in
            try await peer.respond(to: stream, body: answer)
            try await peer.send(make(stream))
        }
    }
}
