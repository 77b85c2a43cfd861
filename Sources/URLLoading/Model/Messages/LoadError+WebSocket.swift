// SPDX-License-Identifier: Apache-2.0

// Reasons of failure of WebSockets.

import FoundationEssentials
public import URLLoadingWire

extension LoadError.Reason {
    /// The server refused to open a WebSocket; ``LoadError/webSocketRefusal`` is its response.
    public static let webSocketRefused = Self("webSocketRefused", -1011)
    /// A response to the handshake that does not match the request (RFC 6455 §4.1).
    public static let malformedWebSocketHandshake = Self(.malformedWebSocketHandshake)
    /// The WebSocket is closed; ``LoadError/webSocketClose`` has the server's close code and reason, if it sent one.
    public static let webSocketClosed = Self("webSocketClosed", -1005)
    /// Another task already receives: a WebSocket has one receiver at a time.
    public static let webSocketBusy = Self("webSocketBusy", -1)
    /// The server did not answer a ping in time.
    public static let pingTimeout = Self("pingTimeout", -1001)
    /// The server did not answer a close frame, or did not close its connection after it, in time.
    public static let closeTimeout = Self("closeTimeout", -1001)
    /// A frame that violates RFC 6455 §5.
    public static let malformedFrame = Self(.malformedFrame)
    /// A message beyond ``WebSocketOptions/maximumMessageSize``.
    public static let messageTooLarge = Self(.messageTooLarge)
    /// A text message that is not valid UTF-8 (RFC 6455 §8.1).
    public static let invalidText = Self(.invalidText)
    /// More frames without content than the limit allows, as a flooding server sends them.
    public static let webSocketFlood = Self(.webSocketFlood)
}

/// Carries the response of a server that refused to open a WebSocket.
struct WebSocketRefusal: ErrorCarrier { let response: Response }

struct WebSocketClosed: ErrorCarrier { let close: WebSocketClose }

extension LoadError {
    /// The response of a server that refused the WebSocket; its body is not read.
    ///
    /// ```swift
    /// if let refusal = error.webSocketRefusal { print(refusal.http?.status ?? "") }
    /// ```
    public var webSocketRefusal: Response? { (underlying as? WebSocketRefusal)?.response }

    /// The code and the reason of the server's close frame that ended the WebSocket; the code is
    /// ``WebSocketClose/Code/noStatus`` if the frame had none.
    public var webSocketClose: WebSocketClose? { (underlying as? WebSocketClosed)?.close }
}

extension LoadError {
    /// Returns this error with its URL as the program writes those of WebSockets, or with `given` if it has none.
    func ofWebSocket(at given: URL) -> LoadError {
        with(url: url?.ofWebSocket(like: given) ?? given)
    }
}
