public import FoundationEssentials
public import URLLoadingWire

/// What goes over a WebSocket, whole.
///
/// ```swift
/// try await socket.send(.text("hello"))
/// if case .data(let bytes) = try await socket.receive() { … }
/// ```
public enum WebSocketMessage: Sendable, Hashable {
    /// UTF-8 on the wire.
    case text(String)
    /// Bytes, whatever they mean.
    case data(Data)

    /// Its bytes on the wire, uncompressed.
    public var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}

/// What client and server agreed upon when a WebSocket was opened.
public struct WebSocketOpening: Sendable {
    /// The answer to the handshake: 101, after redirects the last one.
    public let response: Response
    /// Which of the subprotocols that were offered the server chose; `nil` for none.
    public let subprotocol: String?
    /// Whether messages may be compressed (RFC 7692).
    public let isCompressed: Bool
}

/// How a WebSocket ended.
public struct WebSocketEnding: Sendable, CustomStringConvertible {
    /// What the server's close frame said; ``WebSocketClose/Code/noStatus`` if it gave no reason, `nil` if none came.
    public let close: WebSocketClose?
    /// Whether the server closed first.
    public let isClosedByServer: Bool
    /// What went wrong; `nil` if both sides took leave, whatever their reasons.
    public let error: LoadError?

    public var description: String {
        if let error { return "failed \(error)" }
        return "closed by \(isClosedByServer ? "the peer" : "us")\(close.map { ", \($0)" } ?? "")"
    }
}
