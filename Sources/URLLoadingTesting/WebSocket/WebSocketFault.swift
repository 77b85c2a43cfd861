// SPDX-License-Identifier: Apache-2.0

public import URLLoading
import URLLoadingWire

/// A named violation of RFC 6455 §5 to §7 or RFC 7692 by a server on an open WebSocket, with the reaction that a client
/// must show.
///
/// ```swift
/// for fault in WebSocketFault.all {
///     origin.webSocket("/\(fault.name)", fault.server)
///     // the client fails with fault.reason, and says fault.code
/// }
/// ```
public struct WebSocketFault: Sendable, CustomStringConvertible {
    /// The name of the fault, for routes and messages of tests.
    public let name: String
    /// The bytes that the server sends.
    public let bytes: [UInt8]
    /// The reason with which the client's call fails.
    public let reason: LoadError.Reason
    /// The code of the client's close frame; `nil` if none is expected, because the server has left.
    public let code: WebSocketClose.Code?
    /// Whether compression must have been negotiated.
    public let needsCompression: Bool
    private let ending: Ending

    private enum Ending: Sendable { case receivesClose, closes, resets }

    /// A server that performs a correct handshake, and then sends the fault.
    public var server: WebSocketTestServer { server { _ in } }

    /// Returns a server with this fault.
    /// - Parameter onClose: called with the status of the client's close frame.
    public func server(_ onClose: @escaping @Sendable (WebSocketClose?) -> Void) -> WebSocketTestServer {
        var server = WebSocketTestServer { socket in
            try await socket.send(bytes: bytes)
            switch ending {
            case .receivesClose:
                onClose(try await socket.untilClose())
                try await socket.untilEnd()
            case .closes: break
            case .resets: socket.reset()
            }
        }
        server.compresses = needsCompression
        return server
    }

    public var description: String { name }

    /// All faults of this kind.
    public static let all: [WebSocketFault] = frames + lengths + fragments + text + closes + compression + leaving

    private init(
        _ name: String, _ bytes: [UInt8], _ reason: LoadError.Reason = .malformedFrame,
        _ code: WebSocketClose.Code? = .protocolError, compressed: Bool = false, _ ending: Ending = .receivesClose
    ) {
        (self.name, self.bytes, self.reason, self.code, self.ending) = (name, bytes, reason, code, ending)
        needsCompression = compressed
    }

    // MARK: RFC 6455 §5.2, §5.5

    private static let frames: [WebSocketFault] =
        [
            WebSocketFault("RSV1 without compression", [0xC1, 0x01, 0x61]),
            WebSocketFault("RSV2", [0xA1, 0x01, 0x61]),
            WebSocketFault("RSV3", [0x91, 0x01, 0x61]),
            WebSocketFault("masked", [0x81, 0x81, 1, 2, 3, 4, 0x60]),
            WebSocketFault("masked and empty", [0x81, 0x80, 1, 2, 3, 4]),
            WebSocketFault("ping in fragments", [0x09, 0x00]),
            WebSocketFault("close in fragments", [0x08, 0x00]),
            WebSocketFault("compressed ping", [0xC9, 0x00], compressed: true),
            WebSocketFault("ping of 126 bytes", [0x89, 126, 0, 126] + [UInt8](repeating: 0, count: 126)),
            WebSocketFault("ping of 2^63 bytes", [0x89, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ] + [UInt8(3), 4, 5, 6, 7, 11, 12, 13, 14, 15].map { WebSocketFault("opcode \($0)", [0x80 | $0, 0x00]) }

    private static let lengths: [WebSocketFault] = [
        WebSocketFault(
            "length of 2^62, and nothing of it", [0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0], .messageTooLarge,
            .messageTooBig),
        WebSocketFault(
            "length of 2^62 in a later fragment", [0x02, 0x01, 0x61, 0x80, 127, 0x40, 0, 0, 0, 0, 0, 0, 0],
            .messageTooLarge, .messageTooBig),
        WebSocketFault("length 125 in 16 bits", [0x82, 126, 0, 125]),
        WebSocketFault("length 65535 in 64 bits", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
        WebSocketFault("length of 2^63", [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        WebSocketFault("length of 2^64 - 1", [0x82, 127] + [UInt8](repeating: 0xFF, count: 8)),
    ]

    // MARK: RFC 6455 §5.4

    private static let fragments: [WebSocketFault] = [
        WebSocketFault("continuation of nothing", [0x80, 0x01, 0x61]),
        WebSocketFault("continuation after a message", [0x81, 0x01, 0x61, 0x80, 0x01, 0x61]),
        WebSocketFault("text within text", [0x01, 0x01, 0x61, 0x81, 0x01, 0x61]),
        WebSocketFault("binary within text", [0x01, 0x01, 0x61, 0x82, 0x01, 0x61]),
        WebSocketFault("RSV1 on a continuation", [0x41, 0x01, 0x00, 0xC0, 0x01, 0x61], compressed: true),
        WebSocketFault(
            "empty fragments for ever", [0x01, 0x00] + (0..<1_100).flatMap { _ in [UInt8(0x00), 0x00] },
            .webSocketFlood,
            .policyViolation),
    ]

    // MARK: RFC 6455 §8.1

    private static let text: [WebSocketFault] =
        [
            ("lone continuation byte", [0x80]), ("overlong slash", [0xC0, 0xAF]),
            ("overlong of three", [0xE0, 0x80, 0x80]),
            ("overlong of four", [0xF0, 0x80, 0x80, 0x80]), ("surrogate", [0xED, 0xA0, 0x80]),
            ("above U+10FFFF", [0xF4, 0x90, 0x80, 0x80]), ("byte FE", [0xFE]), ("cut after the first of two", [0xC3]),
            ("cut after the second of three", [0xE2, 0x82]), ("cut after the third of four", [0xF0, 0x9F, 0x98]),
        ].map { (name: String, bytes: [UInt8]) in
            WebSocketFault("text: " + name, [0x81, UInt8(bytes.count)] + bytes, .invalidText, .invalidContent)
        } + [
            // Detected before the message is complete.
            WebSocketFault("text: bad in a first fragment", [0x01, 0x02, 0xC3, 0x28], .invalidText, .invalidContent),
            WebSocketFault(
                "text: bad across frames", [0x01, 0x01, 0xE2, 0x80, 0x01, 0x28], .invalidText, .invalidContent),
            WebSocketFault(
                "text: cut by the end of fragments", [0x01, 0x01, 0xE2, 0x80, 0x01, 0x82], .invalidText, .invalidContent
            ),
        ]

    // MARK: RFC 6455 §5.5.1, §7.4

    private static let closes: [WebSocketFault] =
        [
            WebSocketFault("close of one byte", [0x88, 0x01, 0x03]),
            WebSocketFault(
                "close with a reason that is no UTF-8", [0x88, 0x03, 0x03, 0xE8, 0xFF], .invalidText, .invalidContent),
        ]
        + [UInt16(0), 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map { code in
            WebSocketFault("close with \(code)", [0x88, 0x02, UInt8(code >> 8), UInt8(truncatingIfNeeded: code)])
        }

    // MARK: RFC 7692 §7.2

    private static let compression: [WebSocketFault] = [
        WebSocketFault(
            "damaged deflate", [0xC2, 0x04, 0xFF, 0xFF, 0xFF, 0xFF], .contentDecodingFailed, .invalidContent,
            compressed: true),
        WebSocketFault(
            "cut deflate", frame(0xC2, [0xF2, 0x48, 0xCD, 0xC9]), .contentDecodingFailed, .invalidContent,
            compressed: true),
        WebSocketFault(
            "text: compressed, no UTF-8", frame(0xC1, deflated([0xC3, 0x28])), .invalidText, .invalidContent,
            compressed: true),
        WebSocketFault(
            "bomb", frame(0xC2, deflated([UInt8](repeating: 0, count: 20 << 20))), .messageTooLarge, .messageTooBig,
            compressed: true),
    ]

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        let deflater = MessageDeflater(windowBits: 15, forgets: true)
        return bytes.withUnsafeBytes { all in (try? deflater?.deflate(all)) ?? [] }
    }

    private static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        return
            (count < 126 ? [first, UInt8(count)] : [first, 126, UInt8(count >> 8), UInt8(truncatingIfNeeded: count)])
            + payload
    }

    // MARK: Leaving without a close frame

    private static let leaving: [WebSocketFault] = [
        WebSocketFault("leaves at once", [], .connectionLost, nil, .closes),
        WebSocketFault("leaves in a head", [0x82], .connectionLost, nil, .closes),
        WebSocketFault("leaves in a length", [0x82, 127, 0, 0], .connectionLost, nil, .closes),
        WebSocketFault("leaves in a payload", [0x82, 0x05, 1, 2], .connectionLost, nil, .closes),
        WebSocketFault("leaves between fragments", [0x01, 0x01, 0x61], .connectionLost, nil, .closes),
        WebSocketFault("leaves in a close", [0x88, 0x02, 0x03], .connectionLost, nil, .closes),
        WebSocketFault("resets", [], .connectionLost, nil, .resets),
        WebSocketFault("resets in a payload", [0x82, 0x05, 1, 2], .connectionLost, nil, .resets),
    ]
}
