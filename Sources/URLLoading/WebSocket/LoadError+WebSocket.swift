// What goes wrong with WebSockets.

public import URLLoadingWire

extension LoadError.Reason {
    /// The server would not open a WebSocket; ``LoadError/webSocketRefusal`` is what it answered.
    public static let webSocketRefused = Self("webSocketRefused", -1011)
    /// An answer to the handshake that does not fit what was asked (RFC 6455 §4.1).
    public static let malformedWebSocketHandshake = Self(.malformedWebSocketHandshake)
    /// The WebSocket is closed; ``LoadError/webSocketClose`` says why, if the server did.
    public static let webSocketClosed = Self("webSocketClosed", -1005)
    /// Somebody receives already: a WebSocket has one receiver at a time.
    public static let webSocketBusy = Self("webSocketBusy", -1)
    /// The server has not answered a ping in time.
    public static let pingTimeout = Self("pingTimeout", -1001)
    /// The server has not answered a close, or not closed its connection after it, in time.
    public static let closeTimeout = Self("closeTimeout", -1001)
    /// A frame that breaks RFC 6455 §5.
    public static let malformedFrame = Self(.malformedFrame)
    /// A message beyond ``WebSocketOptions/maximumMessageSize``.
    public static let messageTooLarge = Self(.messageTooLarge)
    /// Text that is no UTF-8 (RFC 6455 §8.1).
    public static let invalidText = Self(.invalidText)
    /// Frames without content, more than the server can mean.
    public static let webSocketFlood = Self(.webSocketFlood)
}

/// What a server answered that would not open a WebSocket.
struct WebSocketRefusal: Error { let response: Response }

struct WebSocketClosed: Error { let close: WebSocketClose }

extension LoadError {
    /// The response in place of a WebSocket; its body is not read.
    ///
    /// ```swift
    /// catch where error.reason == .webSocketRefused {
    ///     print(error.webSocketRefusal?.http?.status ?? "")
    /// }
    /// ```
    public var webSocketRefusal: Response? { (underlying as? WebSocketRefusal)?.response }

    /// What the server's close frame said that ended the WebSocket.
    public var webSocketClose: WebSocketClose? { (underlying as? WebSocketClosed)?.close }
}
