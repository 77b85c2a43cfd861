/// How a WebSocket behaves once it is open.
///
/// ```swift
/// var options = WebSocketOptions()
/// options.pingInterval = .seconds(30)
/// let socket = session.webSocketTask(url, options: options)
/// ```
public struct WebSocketOptions: Sendable, Hashable {
    /// The most bytes that a message received may have, expanded; at least 0. A longer one ends the socket with
    /// ``LoadError/Reason/messageTooLarge``, and the server hears 1009.
    public var maximumMessageSize = 16 << 20
    /// Whether compression is offered. Off: it costs up to 300 KB of memory for each socket that uses it, and content
    /// that is secret beside content that others choose can be guessed from the sizes of its messages.
    public var compression = Compression.off
    /// How often the server is asked whether it is still there; more than zero, `nil` for never. One that has not
    /// answered when the next ping is due ends the socket with ``LoadError/Reason/pingTimeout``.
    public var pingInterval: Duration?
    /// How long the server may take to answer a close, and to close the connection after it; more than zero.
    public var closeTimeout = Duration.seconds(10)
    /// How many bytes of messages nobody has asked for yet are taken from the connection, at least 0; one message may
    /// go beyond. A ping, a pong or a close behind what is not taken waits until somebody receives.
    public var readAhead = 64 * 1024

    public init() {}

    /// permessage-deflate (RFC 7692).
    public enum Compression: Sendable, Hashable {
        case off
        /// Messages of at least so many bytes are sent compressed, if the server agrees; it may compress its own.
        /// - Parameter forgetting: neither side keeps what it has seen from one message to the next: less memory, and
        ///   messages tell nothing of each other, for larger ones.
        case deflate(minimumSize: Int = 1024, noContextTakeover: Bool = false)
    }
}

extension WebSocketOptions.Compression {
    var isOffered: Bool { self != .off }
    var forgets: Bool { if case .deflate(_, true) = self { true } else { false } }
    /// Messages from here on are worth it.
    var threshold: Int { if case .deflate(let least, _) = self { least } else { .max } }
}
