// SPDX-License-Identifier: Apache-2.0

// Unusual but legal behaviour.

import URLLoadingWire

extension HTTP2Fault {
    /// Legal frames that few servers send: each response is 200 with `ok`.
    public static let oddities: [HTTP2Fault] = [
        frames("unknown frames", .succeeds) {
            [
                HTTP2Frame(.init(rawValue: 0xFA), flags: .init(rawValue: 0xFF), stream: $0, payload: [1, 2, 3]),
                HTTP2Frame(.init(rawValue: 0xBE)),
            ]
        },
        frames("unknown settings", .succeeds) { _ in [.settings(.init(0xFFFF, 1), .init(0x0A0A, 0))] },
        frames("undefined flags", .succeeds) { _ in
            [HTTP2Frame(.ping, flags: .init(rawValue: 0xFE), payload: [UInt8](repeating: 0, count: 8))]
        },
        frames("PRIORITY", .succeeds) { [.priority(stream: $0), .priority(stream: $0 + 98)] },
        frames("ALTSVC and ORIGIN", .succeeds) { _ in
            [
                HTTP2Frame(.init(rawValue: 10), payload: [0, 1, 0x78, 0x79]),
                HTTP2Frame(.init(rawValue: 12), payload: [0, 1, 0x78]),
            ]
        },
        frames("SETTINGS in between", .succeeds) { _ in
            [.settings(.initialWindowSize(1 << 20), .maxConcurrentStreams(5))]
        },
        frames("interim responses", .succeeds) { stream in
            (0..<3).map { _ in
                .headers(stream: stream, HTTP2Fields([.init(":status", "103"), .init("link", "</x>")]).encoded())
            }
        },
        instead("reserved bits", .succeeds) { peer, stream in
            var head = HTTP2Frame.headers(stream: stream, status)
            var body = HTTP2Frame.data(stream: stream, answer, endStream: true)
            head.reservedBit = true
            body.reservedBit = true
            try await peer.send(head, body)
        },
        instead("padding", .succeeds) { peer, stream in
            try await peer.send(
                .headers(stream: stream, status, padding: 255), .data(stream: stream, [0x6F], padding: 0),
                .data(stream: stream, [], padding: 100), .data(stream: stream, [0x6B], endStream: true, padding: 255))
        },
        instead("a priority in HEADERS", .succeeds) { peer, stream in
            let payload = [0x80, 0, 0, 0, 15] + status
            try await peer.send(
                HTTP2Frame(.headers, flags: [.priority, .endHeaders], stream: stream, payload: payload))
            try await peer.data(stream, answer, endStream: true)
        },
        instead("few CONTINUATIONs", .succeeds) { peer, stream in
            let block = HTTP2Fields(.ok, ["x": String(repeating: "a", count: 100)]).encoded()
            try await peer.headers(stream, block: block, splitInto: 5)
            try await peer.data(stream, answer, endStream: true)
        },
        instead("an empty DATA at the end", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
            try await peer.data(stream, [], endStream: true)
        },
        instead("trailers", .succeeds) { peer, stream in
            try await peer.respond(to: stream, .ok, body: answer, trailers: ["sum": "221"])
        },
        instead("a table that is emptied and filled", .succeeds) { peer, stream in
            let block =
                HPACK.tableSize(0) + HPACK.tableSize(4_096) + status + HPACK.field(.init("x", "y", .indexing))
                + HPACK.indexed(62)
            try await peer.headers(stream, block: block)
            try await peer.data(stream, answer, endStream: true)
        },
        instead("byte by byte", .succeeds) { peer, stream in
            let frames = [HTTP2Frame.headers(stream: stream, status), .data(stream: stream, answer, endStream: true)]
            for byte in frames.flatMap(\.bytes) { try await peer.sendRaw([byte]) }
        },
        instead("PING in the body", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: [0x6F], endStream: false)
            try await peer.ping()
            try await peer.data(stream, [0x6B], endStream: true)
        },
        HTTP2Fault("SETTINGS only after the request", .succeeds) { peer in
            let request = try await peer.expectRequest(silently: true)
            try await peer.send(.settings(), .settingsAck)
            try await peer.respond(to: request.stream, body: answer)
            try await peer.serveOn(from: request)
        },
    ]
}
