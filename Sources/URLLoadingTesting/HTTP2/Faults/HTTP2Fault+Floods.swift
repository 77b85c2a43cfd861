// SPDX-License-Identifier: Apache-2.0

// Floods of legal frames, each cheap to send and costly to process (RFC 9113 §10.5).

import URLLoadingWire

extension HTTP2Fault {
    /// Floods. Each one is finite; a client that processes one to its end receives `ok` after it.
    public static let floods: [HTTP2Fault] = [
        continuationFlood, emptyContinuationFlood, smallContinuationFlood, settingsFlood, largeSettingsFlood, pingFlood,
        deafPingFlood, resetFlood, emptyDataFlood, priorityFlood, windowUpdateFlood, unknownFrameFlood, interimFlood,
        pushFlood,
    ]

    /// HEADERS without END_HEADERS, then 10,000 CONTINUATIONs of 1 KiB (CVE-2024-28182, CVE-2023-45288).
    public static let continuationFlood = instead("CONTINUATION flood", .connectionFails()) { peer, stream in
        let field = HPACK.field(.init("x", String(repeating: "a", count: 1000)))
        try await peer.send(.headers(stream: stream, HTTP2Fields(.ok).encoded(), endHeaders: false))
        try await peer.flood(10_000, [.continuation(stream: stream, field, endHeaders: false)])
        try await peer.endSection(stream)
    }

    /// HEADERS without END_HEADERS, then 100,000 empty CONTINUATIONs.
    public static let emptyContinuationFlood = instead("empty CONTINUATION flood", .connectionFails()) { peer, stream in
        try await peer.send(.headers(stream: stream, HTTP2Fields(.ok).encoded(), endHeaders: false))
        try await peer.flood(100_000, [.continuation(stream: stream, [], endHeaders: false)])
        try await peer.endSection(stream)
    }

    /// HEADERS without END_HEADERS, then 100,000 CONTINUATIONs of one field each.
    public static let smallContinuationFlood = instead("small CONTINUATION flood", .connectionFails()) { peer, stream in
        try await peer.send(.headers(stream: stream, HTTP2Fields(.ok).encoded(), endHeaders: false))
        try await peer.flood(100_000, [.continuation(stream: stream, HPACK.field(.init("x", "y")), endHeaders: false)])
        try await peer.endSection(stream)
    }

    /// 100,000 empty SETTINGS, each of which requires an acknowledgement (CVE-2019-9515).
    public static let settingsFlood = before("SETTINGS flood", .connectionFails()) { peer, _ in
        try await peer.flood(100_000, [.settings()])
    }

    /// 1,000 SETTINGS of 2,000 parameters each (CVE-2020-11080).
    public static let largeSettingsFlood = before("large SETTINGS flood", .connectionFails()) { peer, _ in
        let many = (0..<2_000).map { HTTP2Frame.Setting(3, 100 + UInt32($0)) }
        try await peer.flood(1_000, [.settings(many)])
    }

    /// 100,000 PINGs, each of which requires a reply (CVE-2019-9512).
    public static let pingFlood = before("PING flood", .connectionFails()) { peer, _ in
        try await peer.flood(100_000, [.ping()])
    }

    /// Two million PINGs from a server that reads no replies while it sends.
    public static let deafPingFlood = before("deaf PING flood", .connectionFails()) { peer, _ in
        peer.readsWhileSending = false
        defer { peer.readsWhileSending = true }
        try await peer.flood(2_000_000, [.ping()])
    }

    /// 100,000 RST_STREAMs for one stream (CVE-2019-9514 in the other direction).
    public static let resetFlood = instead("RST_STREAM flood", .streamFails()) { peer, stream in
        try await peer.flood(100_000, [.resetStream(stream, .cancel)])
    }

    /// 100,000 DATA frames without data (CVE-2019-9518).
    public static let emptyDataFlood = instead("empty DATA flood", .streamFails()) { peer, stream in
        try await peer.respond(to: stream, endStream: false)
        try await peer.flood(100_000, [.data(stream: stream, [])])
        try await peer.data(stream, answer, endStream: true)
    }

    /// 100,000 PRIORITY frames, which are obsolete.
    public static let priorityFlood = before("PRIORITY flood", .ends) { peer, stream in
        try await peer.flood(100_000, [.priority(stream: stream, dependsOn: 0, weight: 1)])
    }

    /// 100,000 WINDOW_UPDATEs of one byte.
    public static let windowUpdateFlood = before("WINDOW_UPDATE flood", .ends) { peer, _ in
        try await peer.flood(100_000, [.windowUpdate(1)])
    }

    /// 100,000 frames of an unknown type.
    public static let unknownFrameFlood = before("flood of unknown frames", .ends) { peer, _ in
        try await peer.flood(100_000, [HTTP2Frame(.init(rawValue: 0xFA))])
    }

    /// 100,000 interim responses.
    public static let interimFlood = before("103 flood", .streamFails()) { peer, stream in
        try await peer.flood(100_000, [.headers(stream: stream, (HTTP2Fields([.init(":status", "103")])).encoded())])
    }

    /// 10,000 unrequested PUSH_PROMISEs.
    public static let pushFlood = before("PUSH_PROMISE flood", .connectionFails()) { peer, stream in
        let fields: HTTP2Fields = [":method": "GET", ":scheme": "http", ":path": "/pushed", ":authority": "localhost"]
        let frames = (1...10_000).map { HTTP2Frame.pushPromise(stream: stream, promised: $0 * 2, fields.encoded()) }
        try await peer.send(frames)
    }
}

extension HTTP2Peer {
    /// Ends a field section that was left open, and sends the response body.
    fileprivate func endSection(_ stream: Int) async throws(Failure) {
        try await send(.continuation(stream: stream, []), .data(stream: stream, HTTP2Fault.answer, endStream: true))
    }
}
