// SPDX-License-Identifier: Apache-2.0

/// The status of a WebSocket's closure, as carried by a close frame (RFC 6455 §7).
///
/// ```swift
/// await socket.close(WebSocketClose(.normal, reason: "done for today"))
/// ```
public struct WebSocketClose: Sendable, Hashable, CustomStringConvertible {
    /// The status code.
    public let code: Code
    /// A reason for display; at most 123 bytes of UTF-8.
    public let reason: String

    /// Creates a status.
    /// - Parameter reason: truncated to the size of a close frame, at a character boundary.
    public init(_ code: Code, reason: String = "") {
        self.code = code
        self.reason = reason.prefix(utf8Count: WebSocketFrame.maximumControlBytes - 2)
    }

    /// A status code (RFC 6455 §7.4, and the IANA registry).
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The number, such as `1000`.
        public var description: String { "\(rawValue)" }

        /// The purpose of the connection is fulfilled.
        public static let normal = Code(rawValue: 1000)
        /// The server is going down, or the user has left the page.
        public static let goingAway = Code(rawValue: 1001)
        /// 1002: the peer violated the protocol.
        public static let protocolError = Code(rawValue: 1002)
        /// The peer does not accept this kind of message.
        public static let unsupportedData = Code(rawValue: 1003)
        /// The close frame had no code. Never sent.
        public static let noStatus = Code(rawValue: 1005)
        /// The connection ended without a close frame. Never sent.
        public static let abnormal = Code(rawValue: 1006)
        /// Content that does not fit its kind: text that is not UTF-8.
        public static let invalidContent = Code(rawValue: 1007)
        /// 1008: the message violates a policy of the receiver.
        public static let policyViolation = Code(rawValue: 1008)
        /// 1009: the message is larger than the receiver accepts.
        public static let messageTooBig = Code(rawValue: 1009)
        /// The server's response lacks an extension that the client requires.
        public static let missingExtension = Code(rawValue: 1010)
        /// 1011: the server met an unexpected condition.
        public static let internalError = Code(rawValue: 1011)
        /// The TLS handshake failed. Never sent.
        public static let tlsFailure = Code(rawValue: 1015)

        /// Whether a close frame may carry the code: 1004, 1005, 1006 and 1015 exist in APIs only, and other codes
        /// below 3000 are unassigned.
        public var isSendable: Bool {
            switch rawValue {
            case 1000...1003, 1007...1014, 3000...4999: true
            default: false
            }
        }
    }

    public var description: String { reason.isEmpty ? "\(code.rawValue)" : "\(code.rawValue) \(reason)" }
}
