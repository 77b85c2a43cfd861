// SPDX-License-Identifier: Apache-2.0

// The control frames to send between messages: pongs, pings, the close. Bounded in size, whatever the peer sends.

import URLLoadingWire

struct WebSocketControl: Sendable {
    enum Frame: Sendable {
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose?)
    }

    struct Ping: Sendable {
        let id: UInt64
        var sentAt: Int64?
        var answeredAt: Int64?
    }

    /// The payload of the pong to send. Of several received pings only the latest is answered (RFC 6455 §5.5.3).
    private var pong: [UInt8]?
    /// The sent or queued pings whose callers wait for an answer.
    private var pings: [Ping] = []
    private var lastID: UInt64
    private var close: WebSocketClose?
    private var isCloseQueued = false
    /// True once a close frame is queued or sent.
    var hasSentClose: Bool { isCloseQueued }
    private var isCloseTaken = false
    /// The frame that a stop of the socket sends: that of the call that closes the socket, otherwise code 1001.
    private var farewell: WebSocketClose?

    static let maximumPings = 64

    /// - Parameter firstID: the first number of this side's pings; random, so that a peer cannot answer a ping in
    ///   advance.
    init(firstID: UInt64 = .random(in: .min ... .max)) { lastID = firstID }

    mutating func receivedPing(_ payload: [UInt8]) { pong = payload }

    mutating func queueClose(_ close: WebSocketClose?) {
        guard !isCloseQueued else { return }
        (isCloseQueued, self.close) = (true, close)
    }

    /// Notes the frame of a call that closes the socket, before the call has its turn to send.
    mutating func announceClose(_ close: WebSocketClose) { farewell = farewell ?? close }

    /// Queues the last frame of a socket that is stopped.
    mutating func queueFarewell() { queueClose(farewell ?? WebSocketClose(.goingAway)) }

    /// - Returns: the number of the ping; `nil` if too many are unanswered.
    mutating func queuePing() -> UInt64? {
        guard pings.count < Self.maximumPings else { return nil }
        lastID &+= 1
        pings.append(Ping(id: lastID))
        return lastID
    }

    /// Records a pong, which also answers the pings sent before its own.
    mutating func receivedPong(_ payload: [UInt8], _ now: Int64) {
        guard payload.count == 8 else { return }
        let id = payload.reduce(0) { $0 << 8 | UInt64($1) }
        guard let index = pings.firstIndex(where: { $0.id == id && $0.sentAt != nil }) else { return }
        for earlier in 0...index where pings[earlier].answeredAt == nil { pings[earlier].answeredAt = now }
    }

    /// Returns the round-trip time in nanoseconds; `nil` if the answer has not arrived.
    func answer(to id: UInt64) -> Int64? {
        guard let ping = pings.first(where: { $0.id == id }), let sent = ping.sentAt, let answered = ping.answeredAt
        else { return nil }
        return max(0, answered - sent)
    }

    mutating func forgetPing(_ id: UInt64) { pings.removeAll { $0.id == id } }

    var isEmpty: Bool { pong == nil && !(isCloseQueued && !isCloseTaken) && !pings.contains { $0.sentAt == nil } }

    /// Returns the next frame to send; the close frame is the last.
    mutating func next(_ now: Int64) -> Frame? {
        guard !isCloseTaken else { return nil }
        if let payload = pong {
            pong = nil
            return .pong(payload)
        }
        if let index = pings.firstIndex(where: { $0.sentAt == nil }) {
            pings[index].sentAt = now
            let id = pings[index].id
            return .ping((0..<8).reversed().map { UInt8(truncatingIfNeeded: id >> (8 * UInt64($0))) })
        }
        guard isCloseQueued else { return nil }
        isCloseTaken = true
        return .close(close)
    }
}
