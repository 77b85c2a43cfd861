// SPDX-License-Identifier: Apache-2.0

/// The behaviour of a WebSocket once it is open.
///
/// ```swift
/// var options = WebSocketOptions()
/// options.pingInterval = .seconds(30)
/// let socket = session.webSocketTask(url, options: options)
/// ```
public struct WebSocketOptions: Sendable, Hashable {
    /// The maximum size of a received message in bytes after decompression; at least 0. A longer one ends the socket
    /// with ``LoadError/Reason/messageTooLarge``, and closes it with code 1009.
    public var maximumMessageSize = 16 << 20
    /// Whether compression is offered. Off by default: it costs up to 300 KB of memory per socket, and if messages mix
    /// secret content with content chosen by an attacker, their sizes reveal the secret.
    public var compression = Compression.off
    /// The interval of keep-alive pings; more than zero, `nil`, the default, for none. A server that has neither
    /// answered nor sent anything else when the next ping is due ends the socket with
    /// ``LoadError/Reason/pingTimeout``. While messages wait for a receiver (``readAhead``), no answer is expected.
    public var pingInterval: Duration?
    /// The time that the server has to answer a close, and to close the connection after it; more than zero, 10 seconds
    /// by default. After both close frames it has at most 2 seconds of that, and on an HTTP/2 stream 0.1 seconds once
    /// the last frame was sent.
    public var closeTimeout = Duration.seconds(10)
    /// The maximum number of bytes of messages that are read before a receiver asks for them; at least 0; one message
    /// may exceed it. A ping, a pong or a close that follows unread messages waits until they are received.
    public var readAhead = 64 * 1024

    /// Creates the default settings.
    public init() {}

    /// permessage-deflate (RFC 7692).
    public enum Compression: Sendable, Hashable {
        /// No compression.
        case off
        /// Messages of at least this many bytes are sent compressed, if the server agrees; it may compress its own.
        /// - Parameter noContextTakeover: both sides reset the compression context after each message. It saves memory,
        ///   and messages reveal nothing about each other, but they compress less.
        case deflate(minimumSize: Int = 1024, noContextTakeover: Bool = false)
    }
}

extension WebSocketOptions.Compression {
    var isOffered: Bool { self != .off }
    var forgets: Bool { if case .deflate(_, true) = self { true } else { false } }
    /// The size in bytes from which on messages are compressed.
    var threshold: Int { if case .deflate(let least, _) = self { least } else { .max } }
}
