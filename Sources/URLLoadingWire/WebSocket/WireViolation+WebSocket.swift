// SPDX-License-Identifier: Apache-2.0

extension WireViolation.Code {
    /// A WebSocket frame violates RFC 6455 §5: reserved bits or opcodes, a forbidden or missing mask, an illegal
    /// length, a misplaced fragment.
    public static let malformedFrame = Self(rawValue: "malformedFrame")
    /// A message exceeds the limit in bytes.
    public static let messageTooLarge = Self(rawValue: "messageTooLarge")
    /// Text is not valid UTF-8 (RFC 6455 §8.1).
    public static let invalidText = Self(rawValue: "invalidText")
    /// The number of frames without content exceeds the limit.
    public static let webSocketFlood = Self(rawValue: "webSocketFlood")
    /// The response to a WebSocket handshake does not match the request (RFC 6455 §4.1).
    public static let malformedWebSocketHandshake = Self(rawValue: "malformedWebSocketHandshake")
}
