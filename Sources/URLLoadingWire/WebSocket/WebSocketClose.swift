/// Why a WebSocket ends, as a close frame says it (RFC 6455 7).
///
/// ```swift
/// await socket.close(.normal, reason: "done for today")
/// ```
public struct WebSocketClose: Sendable, Hashable, CustomStringConvertible {
    public let code: Code
    /// For people; at most 123 bytes of UTF-8.
    public let reason: String

    /// - Parameter reason: cut to what a close frame holds, at the border of a character.
    public init(_ code: Code, reason: String = "") {
        self.code = code
        var reason = reason
        while reason.utf8.count > WebSocketFrame.mostControlBytes - 2 { reason.removeLast() }
        self.reason = reason
    }

    /// A status code (RFC 6455 7.4, and the registry of IANA).
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// What it was opened for is done.
        public static let normal = Code(rawValue: 1000)
        /// The server goes down, or somebody leaves the page.
        public static let goingAway = Code(rawValue: 1001)
        public static let protocolError = Code(rawValue: 1002)
        /// A kind of message that the peer cannot take.
        public static let unsupportedData = Code(rawValue: 1003)
        /// The close frame had no code. Never sent.
        public static let noStatus = Code(rawValue: 1005)
        /// The connection ended without a close frame. Never sent.
        public static let abnormal = Code(rawValue: 1006)
        /// Content that does not fit its kind: text that is no UTF-8.
        public static let invalidContent = Code(rawValue: 1007)
        public static let policyViolation = Code(rawValue: 1008)
        public static let messageTooBig = Code(rawValue: 1009)
        /// The client misses an extension in the server's answer.
        public static let missingExtension = Code(rawValue: 1010)
        public static let internalError = Code(rawValue: 1011)
        /// TLS failed. Never sent.
        public static let tlsFailure = Code(rawValue: 1015)

        /// Whether a close frame may carry it: 1004, 1005, 1006 and 1015 are words of the interface only, and what is
        /// below 3000 and not assigned belongs to nobody.
        public var isSendable: Bool {
            switch rawValue {
            case 1000...1003, 1007...1014, 3000...4999: true
            default: false
            }
        }
    }

    public var description: String { reason.isEmpty ? "\(code.rawValue)" : "\(code.rawValue) \(reason)" }
}
