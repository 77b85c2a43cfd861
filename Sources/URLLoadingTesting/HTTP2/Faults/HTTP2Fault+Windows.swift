// SPDX-License-Identifier: Apache-2.0

// Flow control and SETTINGS: illegal, obstructive, or abrupt (RFC 9113 §5.2, §6.5, §6.9).

import Synchronization
import URLLoadingIO

extension HTTP2Fault {
    /// Faults of flow control. Those about uploads require a request with a body, and answer other requests normally.
    public static let windows: [HTTP2Fault] = [
        frames("WINDOW_UPDATE of 0", violation) { _ in [.windowUpdate(0)] },
        frames("WINDOW_UPDATE of 0 on a stream", .streamFails([.protocolError])) { [.windowUpdate(stream: $0, 0)] },
        frames("a window of 2^31", .connectionFails([.flowControlError])) { _ in [.windowUpdate(0x7FFF_FFFF)] },
        frames("a window of 2^31 on a stream", .streamFails([.flowControlError])) {
            [.windowUpdate(stream: $0, 0x7FFF_FFFF)]
        },
        dataBeyondWindow, windowNeverOpens, windowShrinks, windowByByte,
    ]

    /// DATA that ignores the client's windows, four times the stream's window. A client that reads all the time may
    /// accept it; otherwise it must fail with FLOW_CONTROL_ERROR.
    public static let dataBeyondWindow = instead("DATA beyond the window", .ends) { peer, stream in
        try await peer.respond(to: stream, endStream: false)
        let theirs = max(65_535, peer.input.withLock { $0.windows.initial })
        try await peer.flood(theirs * 4 / 16_384 + 1, [.data(stream: stream, [UInt8](repeating: 0x61, count: 16_384))])
        try await peer.send(.data(stream: stream, answer, endStream: true))
    }

    /// Uploads: a stream whose window is 0 and stays so. Only requests sent before the client knew that are answered.
    public static let windowNeverOpens = HTTP2Fault("a window that never opens", .stalls) { peer in
        try await peer.start(.initialWindowSize(0))
        while true {
            let arrival = try await peer.arrival()
            let frame = arrival.frame
            if frame.kind == .data, !frame.payload.isEmpty, arrival.acknowledged > 0 {
                throw peer.complain("\(frame) without a window")
            }
            if frame.endsStream { try await peer.respond(to: frame.stream, body: answer) }
            try await peer.answerControl(frame)
        }
    }

    /// Uploads of more than 65,535 bytes: when the window is used up, SETTINGS shrink it below zero, and later it is
    /// restored. A complaint is recorded if the client sends data meanwhile.
    public static let windowShrinks = upload("a window that shrinks") { peer, stream in
        var received = 0
        while received < 65_535 {
            let frame = try await peer.expect(.data, stream: stream)
            received += frame.payload.count
            if frame.endsStream { return }
        }
        // The window is used up. SETTINGS with 1 in place of 65,535 lower it to 1 - 65,535; the update by 32,000 is
        // about half of that, and leaves it below zero.
        try await peer.send(
            .settings(.initialWindowSize(1)), .windowUpdate(1 << 24), .windowUpdate(stream: stream, 32_000), .ping())
        while true {
            let frame = try await peer.receive()
            if frame.kind == .ping, frame.isAck { break }
            if frame.kind == .data, !frame.payload.isEmpty { throw peer.complain("\(frame) in a window below 0") }
            try await peer.answerControl(frame)
        }
        try await peer.windowUpdate(stream: stream, 33_534 + 65_535)
        _ = try await peer.expectBody(of: stream)
    }

    /// Uploads: the window opens by one byte at a time for the first ten bytes, then widely.
    public static let windowByByte = upload("a window of one byte", settings: [.initialWindowSize(1)]) { peer, stream in
        // Data sent before the client knew of the window may have used up the connection's window.
        try await peer.windowUpdate(1 << 20)
        var used = 0
        var given = 1
        var grants = 0
        while grants < 10 {
            let arrival = try await peer.arrival()
            let frame = arrival.frame
            if frame.kind == .data, frame.stream == stream {
                used += frame.payload.count
                if arrival.acknowledged > 0, frame.payload.count > 1 {
                    throw peer.complain("\(frame) in a window of 1")
                }
                if frame.endsStream { return }
                guard used >= given else { continue }
                // Data sent before the client knew of the window is credited too.
                try await peer.windowUpdate(stream: stream, used + 1 - given)
                given = used + 1
                grants += 1
            }
            try await peer.answerControl(frame)
        }
        try await peer.windowUpdate(stream: stream, 1 << 20)
        _ = try await peer.expectBody(of: stream)
    }

    /// `receive` consumes the body of a request that has one; then the response is sent.
    private static func upload(
        _ name: String, settings: [HTTP2Frame.Setting] = [],
        _ receive: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) -> HTTP2Fault {
        HTTP2Fault(name, .succeeds) { peer in
            try await peer.start(settings)
            let request = try await peer.expectRequest()
            if !request.endStream { try await receive(peer, request.stream) }
            try await peer.respond(to: request.stream, body: answer)
            try await peer.serveOn(from: request)
        }
    }

    /// SETTINGS that are illegal, late or abrupt.
    public static let settings: [HTTP2Fault] = [
        frames("ENABLE_PUSH 1 of a server", violation) { _ in [.settings(.enablePush(1))] },
        frames("ENABLE_PUSH 2", violation) { _ in [.settings(.enablePush(2))] },
        frames("INITIAL_WINDOW_SIZE 2^31", .connectionFails([.flowControlError])) { _ in
            [.settings(.initialWindowSize(0x8000_0000))]
        },
        frames("INITIAL_WINDOW_SIZE beyond a stream's limit", .connectionFails([.flowControlError])) {
            [.windowUpdate(stream: $0, 0x7FFF_FFFF - 65_535), .settings(.initialWindowSize(65_536))]
        },
        frames("MAX_FRAME_SIZE 16,383", violation) { _ in [.settings(.maxFrameSize(16_383))] },
        frames("MAX_FRAME_SIZE 2^24", violation) { _ in [.settings(.maxFrameSize(1 << 24))] },
        HTTP2Fault("an answer before SETTINGS", violation) { peer in
            let request = try await peer.expectRequest(silently: true)
            try await peer.respond(to: request.stream, body: answer)
            try await peer.serveOn(from: request)
        },
        HTTP2Fault("SETTINGS never acknowledged", .succeeds) { peer in
            try await peer.send(.settings())
            let request = try await peer.expectRequest(silently: true)
            try await peer.respond(to: request.stream, body: answer)
            await peer.untilClosed()
        },
        noStreamsAtFirst, oneStreamAtATime,
        frames("no streams any more", .succeeds) { _ in [.settings(.maxConcurrentStreams(0))] },
        frames("a table of no size", .succeeds) { _ in [.settings(.headerTableSize(0))] },
    ]

    /// MAX_CONCURRENT_STREAMS is 0 until a PING was answered.
    public static let noStreamsAtFirst = HTTP2Fault("no streams at first", .succeeds) { peer in
        try await peer.start(.maxConcurrentStreams(0))
        try await peer.send(.ping())
        while true {
            // A request sent before the SETTINGS were read is not a fault of the client.
            let arrival = try await peer.arrival()
            if arrival.fields != nil { try await peer.respond(to: arrival.frame.stream, body: answer) }
            if arrival.frame.kind == .ping, arrival.frame.isAck { break }
            try await peer.answerControl(arrival.frame)
        }
        try await peer.settings(.maxConcurrentStreams(100))
        try await peer.serveOn()
    }

    /// MAX_CONCURRENT_STREAMS is 1: a complaint is recorded if, after the client's acknowledgement, a request arrives
    /// while another is open.
    public static let oneStreamAtATime = HTTP2Fault("one stream at a time", .succeeds) { peer in
        try await peer.start(.maxConcurrentStreams(1))
        var open: [Int] = []
        while true {
            let arrival = try await peer.arrival()
            if arrival.fields != nil {
                if !open.isEmpty, arrival.acknowledged > 0 { throw peer.complain("\(arrival.frame) beside another") }
                // All that the client sends before it sees the response arrives before the reply to this PING.
                if open.isEmpty { try await peer.send(.ping()) }
                open.append(arrival.frame.stream)
            }
            if arrival.frame.kind == .ping, arrival.frame.isAck {
                for stream in open { try await peer.respond(to: stream, body: answer) }
                open = []
            }
            try await peer.answerControl(arrival.frame)
        }
    }
}
