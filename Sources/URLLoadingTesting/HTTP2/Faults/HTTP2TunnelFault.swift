// SPDX-License-Identifier: Apache-2.0

// Faults of a server around a WebSocket over an HTTP/2 stream (RFC 8441).

public import URLLoading
import URLLoadingWire

/// A named fault of a server of WebSockets over HTTP/2, with the outcome that a correct client produces.
///
/// ```swift
/// for fault in HTTP2TunnelFault.all {
///     server.script(fault.script)
///     // a WebSocket comes to fault.outcome
/// }
/// ```
public struct HTTP2TunnelFault: Sendable, CustomStringConvertible {
    /// A short description, which identifies the fault.
    public let name: String
    /// The outcome that a correct client produces.
    public let outcome: Outcome
    /// The script that the server runs.
    public let script: HTTP2TestServer.Script

    /// The outcome for the WebSocket.
    public enum Outcome: Sendable, Hashable {
        /// The WebSocket's calls fail with one of these reasons.
        case fails([LoadError.Reason])
        /// The WebSocket receives a message with this text.
        case says(String)
    }

    public var description: String { name }

    private init(_ name: String, _ outcome: Outcome, _ script: @escaping HTTP2TestServer.Script) {
        (self.name, self.outcome, self.script) = (name, outcome, script)
    }

    /// Misbehaves after a response that opens the stream, or instead of it.
    private init(
        _ name: String, _ outcome: Outcome, opens: Bool = true,
        _ act: @escaping @Sendable (HTTP2Peer, Int) async throws -> Void
    ) {
        self.init(name, outcome) { peer in
            try await peer.start(.enableConnectProtocol(1))
            let request = try await peer.expectRequest()
            if opens { try await peer.respond(to: request.stream, .ok, endStream: false) }
            try await act(peer, request.stream)
            await peer.untilClosed()
        }
    }

    /// Returns a text frame.
    private static func text(_ text: String) -> [UInt8] { [0x81, UInt8(text.utf8.count)] + Array(text.utf8) }

    /// All faults of this kind.
    public static let all: [HTTP2TunnelFault] = settings + answers + opened + tolerable

    private static let settings: [HTTP2TunnelFault] = [
        HTTP2TunnelFault("the setting is not there", .fails([.webSocketRefused])) { peer in
            try await peer.start()
            await peer.untilClosed()
        },
        HTTP2TunnelFault("the setting is 0", .fails([.webSocketRefused])) { peer in
            try await peer.start(.enableConnectProtocol(0))
            await peer.untilClosed()
        },
        HTTP2TunnelFault("the setting is 2", .fails([.http2Violation])) { peer in
            try await peer.start(.enableConnectProtocol(2))
            await peer.untilClosed()
        },
        // RFC 8441 §3: the setting must not be withdrawn.
        HTTP2TunnelFault("the setting is taken back", .fails([.http2Violation])) { peer, _ in
            try await peer.settings(.enableConnectProtocol(0))
        },
    ]

    private static let answers: [HTTP2TunnelFault] = [
        HTTP2TunnelFault("101", .fails([.http2MalformedMessage]), opens: false) { peer, stream in
            try await peer.send(.headers(stream: stream, HTTP2Fields(Status(101) ?? .ok).encoded()))
        },
        HTTP2TunnelFault("DATA before the answer", .fails([.http2MalformedMessage, .http2Violation]), opens: false) {
            peer, stream in
            try await peer.send(.data(stream: stream, text("early")))
        },
        HTTP2TunnelFault("an answer that ends", .fails([.connectionLost]), opens: false) { peer, stream in
            try await peer.respond(to: stream, .ok)
        },
        HTTP2TunnelFault("404", .fails([.webSocketRefused]), opens: false) { peer, stream in
            try await peer.respond(to: stream, .notFound)
        },
        HTTP2TunnelFault("a reset in place of an answer", .fails([.streamReset]), opens: false) { peer, stream in
            try await peer.reset(stream, .internalError)
        },
    ]

    private static let opened: [HTTP2TunnelFault] = [
        HTTP2TunnelFault("a reset", .fails([.streamReset])) { peer, stream in try await peer.reset(stream, .cancel) },
        HTTP2TunnelFault("a reset without an error", .fails([.streamReset])) { peer, stream in
            try await peer.reset(stream, .noError)
        },
        HTTP2TunnelFault("an end in a frame", .fails([.connectionLost])) { peer, stream in
            try await peer.data(stream, [0x81, 0x05, 0x61], endStream: true)
        },
        HTTP2TunnelFault("trailers in place of an end", .fails([.connectionLost])) { peer, stream in
            try await peer.send(.headers(stream: stream, HTTP2Fields(["x": "y"]).encoded(), endStream: true))
        },
        HTTP2TunnelFault("the connection is closed", .fails([.connectionLost])) { peer, _ in peer.finish() },
        HTTP2TunnelFault("the connection is reset", .fails([.connectionLost])) { peer, _ in peer.abort() },
        HTTP2TunnelFault("GOAWAY below the stream", .fails([.streamReset])) { peer, _ in
            try await peer.goAway(last: 0)
        },
        HTTP2TunnelFault("DATA beyond the window", .fails([.http2FlowControl, .malformedFrame, .connectionLost])) {
            peer, stream in
            for _ in 0..<2_000 { try await peer.send(.data(stream: stream, [UInt8](repeating: 0, count: 16_384))) }
        },
        HTTP2TunnelFault("a masked frame", .fails([.malformedFrame])) { peer, stream in
            try await peer.data(stream, [0x81, 0x80, 1, 2, 3, 4], endStream: false)
        },
    ]

    private static let tolerable: [HTTP2TunnelFault] = [
        HTTP2TunnelFault("GOAWAY above the stream", .says("on")) { peer, stream in
            try await peer.goAway(last: stream)
            try await peer.ping()
            try await peer.data(stream, text("on"), endStream: false)
            try await leave(peer, stream)
        },
        HTTP2TunnelFault("a byte in each frame", .says("slow")) { peer, stream in
            for byte in text("slow") { try await peer.send(.data(stream: stream, [byte]), .data(stream: stream, [])) }
            try await leave(peer, stream)
        },
        HTTP2TunnelFault("a window that opens by single bytes", .says("drop")) { peer, stream in
            try await peer.settings(.initialWindowSize(0))
            try await peer.data(stream, text("drop"), endStream: false)
            var sent: [UInt8] = []
            // A masked close frame with a code.
            while sent.count < 8 {
                try await peer.windowUpdate(stream: stream, 1)
                sent += try await peer.expect(.data, stream: stream).payload
            }
            try await leave(peer, stream, awaitsClose: false)
        },
        HTTP2TunnelFault("an answer in fields of 204", .says("none"), opens: false) { peer, stream in
            try await peer.respond(to: stream, .ok, [.contentLength: "0"], endStream: false)
            try await peer.data(stream, text("none"), endStream: false)
            try await leave(peer, stream)
        },
    ]

    /// Performs the server's part of a normal closing handshake.
    private static func leave(_ peer: HTTP2Peer, _ stream: Int, awaitsClose: Bool = true) async throws {
        if awaitsClose { _ = try await peer.expect(.data, stream: stream) }
        try await peer.data(stream, [0x88, 0x02, 0x03, 0xE8], endStream: true)
    }
}
