// SPDX-License-Identifier: Apache-2.0

// Unusual but legal behaviour.

#if HTTP3

import URLLoadingWire

extension HTTP3Fault {
    /// Legal frames and streams that few servers send: each response is 200 with `ok`.
    public static let oddities: [HTTP3Fault] = [
        before("unknown frames", .succeeds) { peer, stream in
            let unknown = HTTP3Frame(.init(rawValue: 0x21), payload: [1, 2, 3])
            try await peer.send(unknown, HTTP3Frame(.init(rawValue: QUICInteger.largest)), on: stream)
            try await peer.send(unknown, on: try await peer.control())
        },
        before("unknown streams", .succeeds) { peer, _ in
            for type in [0x21, 0x54, QUICInteger.largest] as [UInt64] {
                let stream = try await peer.openStream(type: type)
                try await peer.sendRaw([1, 2, 3], on: stream, endStream: type == 0x21)
            }
        },
        HTTP3Fault("unknown settings", .succeeds) { peer in
            try await peer.start(.init(0x21, 1), .init(0x40, 0), .maxFieldSectionSize(QUICInteger.largest))
            try await peer.serveOn()
        },
        before("CANCEL_PUSH", .ends) { peer, _ in
            try await peer.send(HTTP3Frame(.cancelPush, payload: [0]), on: try await peer.control())
        },
        before("interim responses", .succeeds) { peer, stream in
            for _ in 0..<3 { try await peer.send(.headers([":status": "103", "link": "</x>"]), on: stream) }
        },
        instead("an empty DATA at the end", .succeeds) { peer, stream in
            try await peer.send(.headers(status), .data([]), .data(answer), .data([]), on: stream, endStream: true)
        },
        instead("the end of the stream alone", .succeeds) { peer, stream in
            try await peer.respond(to: stream, body: answer, endStream: false)
            await peer.drain()
            try await peer.sendRaw([], on: stream, endStream: true)
        },
        instead("trailers", .succeeds) { peer, stream in
            try await peer.respond(to: stream, .ok, body: answer, trailers: ["sum": "221"])
        },
        instead("byte by byte", .succeeds) { peer, stream in
            for byte in HTTP3Frame.headers(status).bytes + HTTP3Frame.data(answer).bytes {
                try await peer.sendRaw([byte], on: stream)
                await peer.drain()
            }
            try await peer.sendRaw([], on: stream, endStream: true)
        },
        instead("numbers in eight bytes", .succeeds) { peer, stream in
            let section = QPACK.section(status)
            let head: [UInt8] = [0xC0, 0, 0, 0, 0, 0, 0, 1, 0xC0, 0, 0, 0, 0, 0, 0, UInt8(section.count)]
            try await peer.sendRaw(head + section, on: stream)
            try await peer.send(.data(answer), on: stream, endStream: true)
        },
        instead("a table that is filled before the head", .succeeds) { peer, stream in
            try await peer.sendEncoder(table)
            await peer.drain()
            try await peer.send(.init(.headers, payload: section), .data(answer), on: stream, endStream: true)
        },
        instead("a head that waits for the table", .succeeds) { peer, stream in
            try await peer.send(.init(.headers, payload: section), .data(answer), on: stream, endStream: true)
            await peer.drain()
            try await peer.sendEncoder(table)
        },
        instead("a table byte by byte behind a head", .succeeds) { peer, stream in
            try await peer.send(.init(.headers, payload: section), .data(answer), on: stream, endStream: true)
            for byte in table {
                await peer.drain()
                try await peer.sendEncoder([byte])
            }
        },
        HTTP3Fault("SETTINGS only after the answer", .succeeds) { peer in
            let request = try await peer.expectRequest()
            try await peer.respond(to: request.stream, body: answer)
            await peer.drain()
            try await peer.start()
            try await peer.serveOn(from: request.stream)
        },
        before("PINGs", .succeeds) { peer, _ in
            peer.ping(each: .milliseconds(5))
            try await peer.pause(.milliseconds(50))
            peer.ping(each: nil)
        },
    ]

    private static let table =
        QPACK.capacity(220) + QPACK.insert(.init(":status", "200")) + QPACK.insert(.init("x", "y"))
    private static let section = QPACK.prefix(inserts: 2, base: 2) + QPACK.indexed(1) + QPACK.indexed(0)
}

#endif
