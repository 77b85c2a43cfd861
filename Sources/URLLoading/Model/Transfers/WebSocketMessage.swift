// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

/// A complete message of a WebSocket.
///
/// ```swift
/// try await socket.send(.text("hello"))
/// if case .data(let bytes) = try await socket.receive() { … }
/// ```
public enum WebSocketMessage: Sendable, Hashable {
    /// A text message; UTF-8 on the wire.
    case text(String)
    /// A binary message.
    case data(Data)

    /// The number of bytes on the wire before compression.
    public var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}

/// The parameters that client and server agreed on when a WebSocket was opened.
public struct WebSocketOpening: Sendable {
    /// The response to the handshake: 101, after redirects the final one.
    public let response: Response
    /// The subprotocol that the server chose among those offered; `nil` for none.
    public let subprotocol: String?
    /// Whether messages may be compressed (RFC 7692).
    public let isCompressed: Bool
}

/// How a WebSocket ended.
public struct WebSocketEnding: Sendable, CustomStringConvertible {
    /// The server's close frame; ``WebSocketClose/Code/noStatus`` if it had no code, `nil` if none was received.
    public let close: WebSocketClose?
    /// True if the server closed first.
    public let isClosedByServer: Bool
    /// The error that ended the socket; `nil` if both sides sent close frames, whatever their codes.
    public let error: LoadError?

    public var description: String {
        if let error { return "failed \(error)" }
        return "closed by \(isClosedByServer ? "the server" : "this side")\(close.map { ", \($0)" } ?? "")"
    }
}
