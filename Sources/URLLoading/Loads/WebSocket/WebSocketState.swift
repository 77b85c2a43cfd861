// SPDX-License-Identifier: Apache-2.0

// The state of a WebSocket as a value. Each transition is one method, called under the lock of `WebSocketDriver`; its
// consequences (wake, close) are returned and carried out after the lock is released.
//
// Rule 1: only the opener, the reader, the writer and the call whose turn it is to send touch the transport. There is
// at most one of each.
// Rule 2: once the outcome is known nothing new begins; the last role to leave closes the transport, unless the peer is
// still given time to close it first (`known` with a moment).
//
//     unopened ──resume──▶ opening ──▶ open ──settle──▶ closed
//                             └──────▶ failed
//     none ──fail, close frame──▶ known ──settle──▶ closing ──▶ over

import URLLoadingIO
import URLLoadingWire

struct WebSocketState: Sendable {
    private enum Connection: Sendable {
        case unopened
        case opening
        /// The connection or its handshake failed.
        case failed
        case open(any Transport)
        /// The transport has been taken out, to be closed.
        case closed
    }

    enum Outcome: Sendable {
        case closed(WebSocketClose?, byPeer: Bool)
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    private enum End: Sendable {
        case none
        /// - lingersUntil: when the peer must have closed the connection; until then only its end is read. Nil to close
        ///   at once.
        case known(Outcome, lingersUntil: Int64?)
        /// The caller of `settle` closes the transport.
        case closing(Outcome)
        /// The socket has left its session.
        case over(Outcome)
    }

    private enum Writing: Sendable {
        case idle
        case busy
        /// Another call waits to write.
        case busyAndAwaited
    }

    private var connection = Connection.unopened
    private var end = End.none
    /// The handshake's result; nil before it, and if the socket ended before it.
    private(set) var opening: WebSocketOpening?
    /// The priority of the task that resumed the socket.
    private(set) var priority: TaskPriority?

    // Roles. Each may be taken whatever the others are.
    private(set) var isReading = false
    private var writing = Writing.idle
    private(set) var isReceiving = false
    private var turnHolder: WebSocketCall?
    private var turns: [WebSocketCall] = []
    /// Slots of calls that wait for the next change of the state.
    private var waiting: [PollSlot] = []
    /// When the idle timer is to fire; `nil` while none is set. It reads and writes as far as no wait is needed.
    private var idleTimer: Int64?

    /// Messages read ahead of `receive`.
    private var ahead: [WebSocketMessage] = []
    /// The number of bytes of the messages read ahead, including a fixed cost for each message.
    private var aheadSize = 0
    private let readAhead: Int
    var control = WebSocketControl()

    init(readAhead: Int) { self.readAhead = max(1, readAhead) }

    var transport: (any Transport)? { if case .open(let transport) = connection { transport } else { nil } }

    private var isOpening: Bool { if case .opening = connection { true } else { false } }

    var isResumed: Bool { if case .unopened = connection { false } else { true } }

    var outcome: Outcome? {
        switch end {
        case .none: nil
        case .known(let outcome, _), .closing(let outcome), .over(let outcome): outcome
        }
    }

    /// The time by which the peer must have closed the connection; nil unless the peer is given time to do so.
    var lingersUntil: Int64? { if case .known(_, let moment) = end { moment } else { nil } }

    var isOver: Bool { if case .over = end { true } else { false } }

    // MARK: Opening

    /// - Returns: true if the caller must open the socket.
    mutating func resume(_ priority: TaskPriority) -> Bool {
        guard case .unopened = connection, case .none = end else { return false }
        (connection, self.priority) = (.opening, priority)
        return true
    }

    mutating func opened(_ transport: any Transport, _ opening: WebSocketOpening) {
        connection = .open(transport)
        if outcome == nil { self.opening = opening }
    }

    mutating func failedToOpen(_ error: LoadError) {
        connection = .failed
        fail(error)
    }

    // MARK: Roles

    /// True if the reader may read: messages, or the end of the connection.
    var mayRead: Bool {
        guard transport != nil else { return false }
        return switch end {
        case .none: aheadSize < readAhead || discards
        case .known(_, let moment): moment != nil
        case .closing, .over: false
        }
    }

    /// True if received messages are dropped: this side has sent its close frame and no call receives.
    var discards: Bool { control.hasSentClose && !isReceiving }

    mutating func beginReading() -> (any Transport)? {
        guard !isReading, mayRead else { return nil }
        isReading = true
        return transport
    }

    mutating func endReading() { isReading = false }

    /// Returns nil while another call writes.
    /// - Parameter isWaiting: the caller wants to be woken when that call has finished.
    mutating func beginWriting(isWaiting: Bool) -> (any Transport)? {
        guard let transport, case .idle = writing else {
            if isWaiting, case .busy = writing { writing = .busyAndAwaited }
            return nil
        }
        writing = .busy
        return transport
    }

    /// - Returns: true if another call waits to write.
    mutating func endWriting() -> Bool {
        defer { writing = .idle }
        if case .busyAndAwaited = writing { return true }
        return false
    }

    mutating func enterReceiving() -> Bool {
        defer { isReceiving = true }
        return !isReceiving
    }

    mutating func leaveReceiving() { isReceiving = false }

    mutating func deliver(_ message: WebSocketMessage) {
        guard !discards else { return }
        ahead.append(message)
        aheadSize += message.count + Self.messageCost
    }

    mutating func takeAhead() -> WebSocketMessage? {
        guard !ahead.isEmpty else { return nil }
        let message = ahead.removeFirst()
        aheadSize -= message.count + Self.messageCost
        return message
    }

    private static let messageCost = 64

    // MARK: Turns to send

    mutating func queue(_ call: WebSocketCall) { turns.append(call) }

    mutating func takeTurn(_ call: WebSocketCall) -> Bool {
        guard turnHolder == nil, transport != nil, turns.first?.token === call.token else { return false }
        turns.removeFirst()
        turnHolder = call
        return true
    }

    /// - Returns: the slot of the call whose turn is next.
    mutating func leaveTurn(_ call: WebSocketCall) -> PollSlot? {
        if turnHolder?.token === call.token { turnHolder = nil } else { turns.removeAll { $0.token === call.token } }
        return turnHolder == nil ? turns.first?.slot : nil
    }

    // MARK: The end

    /// Ends the socket. Only the first outcome counts.
    mutating func fail(_ error: LoadError) { decide(.failed(error), lingersUntil: nil) }

    /// Ends the socket after a protocol violation of the peer. The peer is sent a close frame, and given time to read
    /// it.
    mutating func fail(_ error: LoadError, _ code: WebSocketClose.Code, until moment: Int64) {
        guard case .none = end else { return }
        decide(.failed(error), lingersUntil: moment)
        control.queueClose(WebSocketClose(code))
    }

    mutating func receivedClose(_ close: WebSocketClose?, until moment: Int64) {
        guard case .none = end else { return }
        decide(.closed(close, byPeer: !control.hasSentClose), lingersUntil: moment)
        // Answers with the same code (RFC 6455 §5.5.1).
        control.queueClose(close.map { WebSocketClose($0.code) })
    }

    private mutating func decide(_ outcome: Outcome, lingersUntil moment: Int64?) {
        if case .none = end { end = .known(outcome, lingersUntil: moment) }
    }

    /// Ends the wait for the peer to close the connection.
    mutating func stopLingering() {
        if case .known(let outcome, _) = end { end = .known(outcome, lingersUntil: nil) }
    }

    struct Settlement: Sendable {
        /// True if the socket has ended: the caller closes `transport`, if there is one, and leaves the session.
        var ends = false
        var transport: (any Transport)?
        /// The slots of calls that must check the state again.
        var waking: [PollSlot] = []
    }

    /// Returns the consequences of a change of the state.
    /// - Parameter stopped: the error of a stop from outside. While the socket opens, the opener reports it.
    mutating func settle(_ stopped: LoadError?) -> Settlement {
        if let stopped, !isOpening {
            fail(stopped)
            stopLingering()
        }
        var settlement = Settlement(waking: takeWaiting())
        if let first = turns.first { settlement.waking.append(first.slot) }
        guard case .known(let outcome, let moment) = end else { return settlement }
        settlement.waking += turns.dropFirst().map(\.slot)
        if let transport, isReading || turnHolder != nil { settlement.waking.append(transport.slot) }
        guard moment == nil, !isOpening, !isReading, case .idle = writing, turnHolder == nil else { return settlement }
        end = .closing(outcome)
        settlement.ends = true
        if case .open(let transport) = connection {
            settlement.transport = transport
            connection = .closed
        }
        return settlement
    }

    /// Records that the transport is closed and the session left. Returns the waiters to wake.
    mutating func over() -> [PollSlot] {
        if case .closing(let outcome) = end { end = .over(outcome) }
        return takeWaiting()
    }

    /// The phase of the socket, for error reports.
    var phase: LoadError.Phase { opening != nil ? .receiving : isResumed ? .waiting : .preparing }

    // MARK: Waiting for a change

    mutating func wait(_ slot: PollSlot) { waiting.append(slot) }
    mutating func forget(_ slot: PollSlot) { if !waiting.isEmpty { waiting.removeAll { $0 === slot } } }

    private mutating func takeWaiting() -> [PollSlot] {
        defer { waiting = [] }
        return waiting
    }

    // MARK: The idle timer

    /// Returns whether the caller sets the idle timer: an earlier one takes the place of one that is set.
    /// - Parameters:
    ///   - due: when it is to fire.
    ///   - hasLeftover: bytes wait to be written, so the timer is needed even while a call reads.
    mutating func setIdleTimer(at due: Int64, hasLeftover: Bool) -> Bool {
        guard transport != nil, idleTimer.map({ due < $0 }) ?? true, hasLeftover || !isReading else { return false }
        idleTimer = due
        return true
    }

    /// Returns whether the timer is the one that was set last.
    mutating func idleTimerFired(_ due: Int64) -> Bool {
        guard idleTimer == due else { return false }
        idleTimer = nil
        return true
    }
}
