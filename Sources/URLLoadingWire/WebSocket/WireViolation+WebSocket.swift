extension WireViolation.Code {
    /// A WebSocket frame that breaks RFC 6455 5: reserved bits or opcodes, masks where none may be or none where one
    /// must, lengths, fragments out of place.
    public static let malformedFrame = Self(rawValue: "malformedFrame")
    /// A message beyond the limit in bytes.
    public static let messageTooLarge = Self(rawValue: "messageTooLarge")
    /// Text that is no UTF-8 (RFC 6455 8.1).
    public static let invalidText = Self(rawValue: "invalidText")
    /// Frames without content beyond the limit.
    public static let webSocketFlood = Self(rawValue: "webSocketFlood")
    /// An answer to a WebSocket handshake that does not fit what was asked (RFC 6455 4.1).
    public static let malformedWebSocketHandshake = Self(rawValue: "malformedWebSocketHandshake")
}
