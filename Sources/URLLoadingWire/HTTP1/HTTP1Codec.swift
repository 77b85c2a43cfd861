// SPDX-License-Identifier: Apache-2.0

// In this folder: HTTP/1.1 without I/O, both roles; heads that break rules are repaired here (17 files: head, body,
//     repair)

// The state of one HTTP/1.1 connection for either role, and the rules that connect its two directions. I/O, time, and
// fields that do not frame the message are handled elsewhere. Three operations: send, receive (the input), next.

/// HTTP/1.1 as bytes and events (RFC 9112), without I/O.
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
/// The codec holds no bytes of head or body. The caller keeps unconsumed bytes at the front of the next input, so that
/// a head is contiguous; a body is returned as ranges of the input.
///
/// Deliberately stricter than RFC 9112: bare LF, both framing fields in one message, transfer codings other than
/// `chunked` and whitespace before a colon are refused in both roles, because two parsers may end such a message at
/// different bytes. A tolerant client reads the head of such a response if it has one reading (`HTTP1HeadRepair`), and
/// the connection carries no other exchange.
package struct HTTP1Codec: Sendable, CustomStringConvertible {
    package enum Role: Sendable, Hashable {
        case client
        case server
    }

    package let role: Role
    package let limits: HTTP1Limits
    /// Whether a client reads heads that break the grammar and have one reading.
    let isTolerant: Bool
    /// Whether a client's requests are of HTTP/1.0; each is the last of its connection.
    let sendsOldVersion: Bool
    /// The version that this side's messages state.
    package var sentVersion: HTTPVersion { sendsOldVersion ? .http10 : .http11 }
    var receiving: HTTP1Receiving
    var sending = HTTP1Sending.idle
    var exchange = HTTP1Exchange()
    var scanner = HTTP1SectionScanner()
    /// Set when either side asks for it, for HTTP/1.0, or after bytes that belong to no message.
    var mustClose = false
    /// Whether a byte of the current response (for servers: request) has arrived. A failure before that may mean that
    /// the peer was just closing the connection (RFC 9112 §9.3.1).
    package internal(set) var hasReceivedBytes = false

    package init(
        role: Role, limits: HTTP1Limits = HTTP1Limits(), isTolerant: Bool = false, sendsOldVersion: Bool = false
    ) {
        self.role = role
        self.isTolerant = isTolerant && role == .client
        self.sendsOldVersion = sendsOldVersion && role == .client
        self.limits = limits.clamped
        receiving = role == .client ? .idle : .head
        exchange.extensionAllowance = self.limits.chunkExtensionSize
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

    /// Prepares for the next exchange; throws `illegalState` unless ``reuse`` is `yes`.
    package mutating func startNextExchange() throws(WireViolation) {
        guard reuse == .yes else { throw .local(.illegalState, "RFC 9112 9.3") }
        self = HTTP1Codec(role: role, limits: limits, isTolerant: isTolerant, sendsOldVersion: sendsOldVersion)
    }

    /// The number of body bytes still to be received, if the length was announced.
    package var remainingLength: Int64? {
        if case .fixed(let remaining) = receiving { return remaining }
        return nil
    }

    /// Whether the body being received ends when the peer closes.
    package var isCloseDelimited: Bool { receiving == .untilClose }

    /// Whether the message from the peer is complete.
    package var isReceiveComplete: Bool { receiving == .ended }

    /// Role, both directions and reusability of the connection in one line.
    package var description: String {
        "HTTP/1.1 \(role): sending \(sending), receiving \(receiving), reuse \(reuse)"
    }
}
