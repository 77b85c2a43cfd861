// What a WebSocket is at a moment, as a value. Every transition is one method, called under the lock of
// `WebSocketLoad`; what follows from it is done after the lock.
//
// Rule 1: whoever has a role (opens, reads, writes, has the turn to send) may touch the transport, nobody else.
// Rule 2: once the outcome is known nobody begins anything; the last one out closes the transport, unless the peer is
// still given time to close it first.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct WebSocketState: Sendable {
    enum Outcome: Sendable {
        case closed(WebSocketClose?, byPeer: Bool)
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    private(set) var isBegun = false
    private(set) var isOpening = false
    private(set) var transport: (any Transport)?
    private(set) var opening: WebSocketOpening?
    private(set) var outcome: Outcome?
    /// The peer is to close the connection now; nothing but its end is read.
    private(set) var isLingering = false
    /// When it must have; `.max` before.
    private(set) var lingersUntil = Int64.max
    private(set) var isOver = false
    private var isEnding = false
    var priority: TaskPriority?

    // Who is inside.
    private(set) var isReading = false
    private(set) var isWriting = false
    /// Somebody wants to write who found somebody writing.
    private var isWriterWanted = false
    private(set) var isReceiving = false
    private var turnHolder: WebSocketCall?
    private var turns: [WebSocketCall] = []
    private var waiting: [PollSlot] = []
    var isKeeperSet = false

    /// Received before anybody asked for it.
    private var ahead: [WebSocketMessage] = []
    /// Its bytes, and what each message costs beside them.
    private var aheadSize = 0
    private let readAhead: Int
    var control = WebSocketControl()

    init(readAhead: Int) { self.readAhead = max(1, readAhead) }

    // MARK: Its beginning

    mutating func resume(_ priority: TaskPriority) -> Bool {
        guard !isBegun, outcome == nil, !isEnding else { return false }
        (isBegun, isOpening, self.priority) = (true, true, priority)
        return true
    }

    /// - Returns: whether it goes on.
    mutating func opened(_ transport: any Transport, _ opening: WebSocketOpening) {
        isOpening = false
        self.transport = transport
        if outcome == nil { self.opening = opening }
    }

    mutating func failedToOpen(_ error: LoadError) {
        isOpening = false
        fail(error)
    }

    // MARK: Roles

    /// Messages may be read, or there is a connection whose end is waited for.
    private var mayRead: Bool {
        guard transport != nil, !isEnding else { return false }
        return isLingering || (outcome == nil && (aheadSize < readAhead || discards))
    }

    /// Whether messages reach nobody any more: we have taken leave, and nobody receives.
    var discards: Bool { control.hasSentClose && !isReceiving }

    mutating func beginReading() -> (any Transport)? {
        guard !isReading, mayRead else { return nil }
        isReading = true
        return transport
    }

    /// Whether whoever reads may read on.
    var mayReadOn: Bool { mayRead }

    mutating func endReading() { isReading = false }

    /// `nil` if somebody writes at this moment: he is asked to say when he has done.
    mutating func beginWriting(isWaiting: Bool) -> (any Transport)? {
        guard let transport, !isEnding, !isWriting else {
            if isWaiting { isWriterWanted = true }
            return nil
        }
        isWriting = true
        return transport
    }

    /// - Returns: whether somebody else waits to write.
    mutating func endWriting() -> Bool {
        isWriting = false
        defer { isWriterWanted = false }
        return isWriterWanted
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
        guard turnHolder == nil, transport != nil, turns.first === call else { return false }
        turns.removeFirst()
        turnHolder = call
        return true
    }

    /// - Returns: who is next.
    mutating func leaveTurn(_ call: WebSocketCall) -> PollSlot? {
        if turnHolder === call { turnHolder = nil } else { turns.removeAll { $0 === call } }
        return turnHolder == nil ? turns.first?.slot : nil
    }

    // MARK: Its end

    mutating func fail(_ error: LoadError) { if outcome == nil { outcome = .failed(error) } }

    /// The peer has broken the rules: it is told so, and given time to hear it.
    mutating func fail(_ error: LoadError, _ code: WebSocketClose.Code, until moment: Int64) {
        guard outcome == nil else { return }
        outcome = .failed(error)
        control.queueClose(WebSocketClose(code))
        (isLingering, lingersUntil) = (true, moment)
    }

    mutating func heardClose(_ close: WebSocketClose?, until moment: Int64) {
        guard outcome == nil else { return }
        outcome = .closed(close, byPeer: !control.hasSentClose)
        // The same code back (RFC 6455 5.5.1).
        control.queueClose(close.map { WebSocketClose($0.code) })
        (isLingering, lingersUntil) = (true, moment)
    }

    mutating func stopLingering() { isLingering = false }

    struct Settlement: Sendable {
        /// Whoever waits must look again.
        var waking: [PollSlot] = []
        /// To be closed by whoever gets it.
        var ending: (any Transport)?
        var ends = false
    }

    mutating func settle(_ stopped: LoadError?) -> Settlement {
        if let stopped, !isOpening {
            fail(stopped)
            isLingering = false
        }
        var settlement = Settlement(waking: takeWaiting())
        if let first = turns.first { settlement.waking.append(first.slot) }
        guard outcome != nil, !isEnding else { return settlement }
        settlement.waking += turns.dropFirst().map(\.slot)
        if let transport, isReading || turnHolder != nil { settlement.waking.append(transport.slot) }
        guard !isLingering, !isOpening, !isReading, !isWriting, turnHolder == nil else { return settlement }
        isEnding = true
        (settlement.ends, settlement.ending) = (true, transport)
        transport = nil
        return settlement
    }

    mutating func over() -> [PollSlot] {
        isOver = true
        return takeWaiting()
    }

    /// How far it has come.
    var phase: LoadError.Phase { opening != nil ? .receiving : isBegun ? .waiting : .preparing }

    // MARK: Waiting for a change

    mutating func wait(_ slot: PollSlot) { waiting.append(slot) }
    mutating func forget(_ slot: PollSlot) { if !waiting.isEmpty { waiting.removeAll { $0 === slot } } }

    mutating func takeWaiting() -> [PollSlot] {
        defer { waiting = [] }
        return waiting
    }

    /// Whether somebody should look after the connection while nobody waits for it.
    var needsKeeper: Bool { mayHaveKeeper && !isReading }
    var mayHaveKeeper: Bool { transport != nil && !isEnding && !isKeeperSet }
}
