// What must live here: the state of one connection, both roles, and the rules that tie the two
// directions together. What this file does not know: where bytes come from, time, and any meaning
// of a field that does not frame the message. Three verbs: send, receive (the input), next.

/// HTTP/1.1 as bytes and events (RFC 9112), without input or output.
///
/// ```swift
/// var codec = HTTP1Codec(role: .client)
/// try codec.sendRequest(method: .get, target: target.originForm, host: target.hostField,
///                       headers: [:], framing: .none, into: &output)
/// // …write `output`, read into `input`, then:
/// var consumed = 0
/// while let event = try codec.next(input, consumed: &consumed) { …; drop `consumed` bytes }
/// ```
///
/// It holds no bytes of head or body. The caller keeps what was not consumed at the front of the next
/// input, so that a head lies in one piece; a body is handed out as ranges of the input.
///
/// Stricter than RFC 9112 asks, on purpose: bare LF, both framing fields in one message, transfer
/// codings other than `chunked` and whitespace before a colon are refused in both roles, since each of
/// them is a message that two readers end at different bytes.
package struct HTTP1Codec: Sendable, CustomStringConvertible {
    package enum Role: Sendable, Hashable {
        case client
        case server
    }

    package let role: Role
    package let limits: HTTP1Limits
    var receiving: HTTP1Receiving
    var sending = HTTP1Sending.idle
    var exchange = HTTP1Exchange()
    var scanner = HTTP1SectionScanner()
    /// Set by either side's wish, by age, or by bytes that belong to nothing.
    var mustClose = false
    /// Whether a byte of the current answer (server: request) has been seen. An exchange that failed
    /// before that may have met a connection the peer was just closing (RFC 9112 9.3.1).
    package internal(set) var hasReceivedBytes = false

    package init(role: Role, limits: HTTP1Limits = HTTP1Limits()) {
        self.role = role
        self.limits = limits.clamped
        receiving = role == .client ? .idle : .head
        exchange.extensionAllowance = limits.chunkExtensionSize
    }

    /// Whether this connection may carry another exchange.
    package var reuse: HTTP1Reuse {
        if mustClose || receiving == .switched || receiving == .failed { return .never }
        switch (sending, receiving) {
        case (.idle, .idle), (.ended, .ended): return .yes
        case (.idle, .head) where role == .server && !hasReceivedBytes: return .yes
        default: return .notYet
        }
    }

    /// Makes ready for the next exchange; throws `illegalState` unless ``reuse`` is `yes`.
    package mutating func startNextExchange() throws(WireViolation) {
        guard reuse == .yes else { throw .local(.illegalState, "RFC 9112 9.3") }
        self = HTTP1Codec(role: role, limits: limits)
    }

    /// Bytes of the body that are still to be received, when its length was announced.
    package var remainingLength: Int64? {
        if case .fixed(let remaining) = receiving { return remaining }
        return nil
    }

    /// Whether the body that is being received ends when the peer closes.
    package var isCloseDelimited: Bool { receiving == .untilClose }

    /// Whether the message from the peer is complete.
    package var isReceiveComplete: Bool { receiving == .ended }

    /// Whether our own message is complete.
    package var isSendComplete: Bool { sending == .ended }

    /// Role, both directions and the fate of the connection in one line.
    package var description: String {
        "HTTP/1.1 \(role): sending \(sending), receiving \(receiving), reuse \(reuse)"
    }
}
