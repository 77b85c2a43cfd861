// SPDX-License-Identifier: Apache-2.0

// The state of a stream as a value. Each transition is one method, called under the lock of `StreamDriver`; its
// consequences (wake, close) are returned and carried out after the lock is released.
//
// Rule 1: only the opener, the reader and the writer touch the transport. There is at most one of each.
// Rule 2: once the outcome is known, no call begins to read or write, and the last one to leave closes the transport.
//
//     unopened ──resume──▶ opening ──▶ open ──settle──▶ closed        adopted ──resume──▶ open
//                             └──────▶ failed

import URLLoadingIO

struct StreamState: Sendable {
    enum Side: Sendable { case input, output }

    /// The phase of the connection.
    enum Connection: Sendable {
        /// The connection is made when the stream is resumed.
        case unopened
        /// Another task made the connection; the stream has not been resumed.
        case adopted(Link)
        case opening
        /// The connection could not be made.
        case failed
        case open(Link)
        /// The transport has been taken out, to be closed.
        case closed
    }

    struct Link: Sendable {
        let transport: any Transport
        let isSecure: Bool
    }

    /// The calls that may touch the transport.
    private enum Occupancy: Sendable {
        case free, reading, writing, both
        /// A TLS handshake, whose reader and writer are the same call.
        case handshake
    }

    /// One direction.
    enum Flow: Sendable {
        case open
        /// The peer has sent everything.
        case ended
        /// Closed by this side.
        case closed
        /// This direction has failed; the other may continue.
        case failed(LoadError)
    }

    enum Outcome: Sendable {
        case finished
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    private enum End: Sendable {
        case none
        /// The outcome is known; calls may still be leaving.
        case known(Outcome, byStop: Bool)
        /// The caller of `settle` closes the transport.
        case closing(Outcome, byStop: Bool)
        /// The stream has left its session.
        case over(Outcome, byStop: Bool)
    }

    private(set) var connection: Connection
    private(set) var isSuspended = true
    var input = Flow.open
    var output = Flow.open
    /// The priority of the task that resumed the stream.
    private(set) var priority: TaskPriority?
    private var occupancy = Occupancy.free
    private var end = End.none
    /// Slots of calls that wait for the next change of the state.
    private var waiting: [PollSlot] = []

    init(adopting transport: (any Transport)? = nil, isSecure: Bool = false) {
        connection = transport.map { .adopted(Link(transport: $0, isSecure: isSecure)) } ?? .unopened
    }

    var link: Link? {
        switch connection {
        case .adopted(let link), .open(let link): link
        case .unopened, .opening, .failed, .closed: nil
        }
    }

    /// The transport; nil while the stream is suspended, not connected, or ended.
    var readyTransport: (any Transport)? { isSuspended || outcome != nil ? nil : link?.transport }

    var isOpening: Bool { if case .opening = connection { true } else { false } }

    var outcome: Outcome? {
        switch end {
        case .none: nil
        case .known(let outcome, _), .closing(let outcome, _), .over(let outcome, _): outcome
        }
    }

    /// Whether the stream ended because it was stopped.
    var isStopped: Bool {
        switch end {
        case .none: false
        case .known(_, let byStop), .closing(_, let byStop), .over(_, let byStop): byStop
        }
    }

    var isOver: Bool { if case .over = end { true } else { false } }

    // MARK: The controls

    enum Beginning { case none, open, adopted }

    mutating func resume(_ priority: TaskPriority) -> Beginning {
        isSuspended = false
        guard case .none = end else { return .none }
        switch connection {
        case .unopened:
            (connection, self.priority) = (.opening, priority)
            return .open
        case .adopted(let link):
            (connection, self.priority) = (.open(link), priority)
            return .adopted
        case .opening, .failed, .open, .closed: return .none
        }
    }

    mutating func suspend() { isSuspended = true }

    // MARK: Calls inside

    /// Returns false if another call uses that side.
    mutating func enter(_ side: Side) -> Bool {
        switch (occupancy, side) {
        case (.free, .input): occupancy = .reading
        case (.free, .output): occupancy = .writing
        case (.reading, .output), (.writing, .input): occupancy = .both
        case (.reading, .input), (.writing, .output), (.both, _), (.handshake, _): return false
        }
        return true
    }

    mutating func leave(_ side: Side) {
        switch (occupancy, side) {
        case (.reading, .input), (.writing, .output): occupancy = .free
        case (.both, .input): occupancy = .writing
        case (.both, .output): occupancy = .reading
        case (.free, _), (.reading, .output), (.writing, .input), (.handshake, _): break
        }
    }

    /// The call that entered both sides begins a handshake.
    mutating func beginHandshake() { occupancy = .handshake }
    mutating func endHandshake() { occupancy = .both }

    mutating func opened(_ result: Result<any Transport, LoadError>, isSecure: Bool) {
        switch result {
        case .success(let transport): connection = .open(Link(transport: transport, isSecure: isSecure))
        case .failure(let error):
            connection = .failed
            fail(error)
        }
    }

    mutating func secured(_ transport: any Transport) {
        connection = .open(Link(transport: transport, isSecure: true))
    }

    // MARK: The end

    /// The phase of the stream, or of a call on one side of it, for error reports.
    func phase(_ side: Side) -> LoadError.Phase {
        switch connection {
        case .unopened: .preparing
        case .opening, .failed: .connecting
        case .adopted, .open, .closed:
            if case .handshake = occupancy { .securing } else { side == .input ? .receiving : .sending }
        }
    }

    /// Records the failure. Only the first failure counts.
    mutating func fail(_ error: LoadError) {
        if case .none = end { end = .known(.failed(error), byStop: false) }
    }

    struct Settlement: Sendable {
        /// True if the stream has ended: the caller closes `transport`, if there is one, and leaves the session.
        var ends = false
        var transport: (any Transport)?
        /// The slots of calls that must check the state again.
        var waking: [PollSlot] = []
    }

    /// Returns the consequences of a change of the state.
    /// - Parameters:
    ///   - stop: the reason why the stream was stopped from outside, if it was. While the stream connects or secures,
    ///     the call that does so reports the stop, because it knows the phase.
    ///   - failure: returns the error of a stop in a phase.
    mutating func settle(_ stop: StopReason?, _ failure: (StopReason, LoadError.Phase) -> LoadError) -> Settlement {
        if case .none = end, stop == nil || !reportsStop {
            if let stop {
                let side: Side = if case .writing = occupancy { .output } else { .input }
                end = .known(.failed(failure(stop, phase(side))), byStop: true)
            } else if let outcome = outcomeOfDirections {
                end = .known(outcome, byStop: false)
            }
        }
        var settlement = Settlement(waking: takeWaiting())
        guard case .known(let outcome, let byStop) = end else { return settlement }
        guard case .free = occupancy, !isOpening else {
            if let link { settlement.waking.append(link.transport.slot) }
            return settlement
        }
        end = .closing(outcome, byStop: byStop)
        settlement.ends = true
        if let link {
            settlement.transport = link.transport
            connection = .closed
        }
        return settlement
    }

    /// True if a call in progress reports a stop itself.
    private var reportsStop: Bool {
        if case .handshake = occupancy { true } else { isOpening }
    }

    /// The outcome when both directions are done.
    private var outcomeOfDirections: Outcome? {
        switch (input, output) {
        case (.failed(let error), _): .failed(error)
        case (.open, _), (_, .open): nil
        case (_, .failed(let error)): .failed(error)
        default: .finished
        }
    }

    /// Records that the transport is closed and the session left. Returns the waiters to wake.
    mutating func over() -> [PollSlot] {
        if case .closing(let outcome, let byStop) = end { end = .over(outcome, byStop: byStop) }
        return takeWaiting()
    }

    // MARK: Waiting for a change

    mutating func wait(_ slot: PollSlot) { waiting.append(slot) }
    mutating func forget(_ slot: PollSlot) { waiting.removeAll { $0 === slot } }

    private mutating func takeWaiting() -> [PollSlot] {
        defer { waiting = [] }
        return waiting
    }
}
