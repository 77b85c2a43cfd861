// What a stream is at a moment, as a value. Every transition is one method, called under the lock of
// `StreamLoad`; what follows from it is done after the lock.
//
// Rule 1: whoever is inside (the opener, one reader, one writer) may touch the transport, nobody else.
// Rule 2: once the outcome is known nobody comes in, and the last one out closes the transport.

import FoundationEssentials
import URLLoadingIO

struct StreamState: Sendable {
    enum Side: Sendable { case input, output }

    /// One direction.
    enum Flow: Sendable {
        case open
        /// The peer has sent all.
        case ended
        /// By this side.
        case closed
        /// Nothing moves in this direction any more; the other may go on.
        case failed(LoadError)
    }

    enum Outcome: Sendable {
        case finished
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    private(set) var isBegun = false
    private(set) var isSuspended = true
    private(set) var transport: (any Transport)?
    private(set) var isSecure = false
    var input = Flow.open
    var output = Flow.open
    private(set) var outcome: Outcome?
    var priority: TaskPriority?

    private(set) var isOpening = false
    /// It ended because it was stopped.
    private(set) var isStopped = false
    private var isConnected: Bool
    /// A handshake is going on; its reader and writer are one and the same.
    var isSecuring = false
    private var isReading = false
    private var isWriting = false
    /// Somebody closes what is left.
    private var isEnding = false
    private(set) var isOver = false
    private var waiting: [PollSlot] = []

    init(adopting transport: (any Transport)? = nil, isSecure: Bool = false) {
        self.transport = transport
        self.isSecure = isSecure
        isConnected = transport != nil
    }

    /// Bytes may move.
    var isReady: Bool { transport != nil && !isSuspended && outcome == nil }

    // MARK: The controls

    enum Beginning { case none, open, adopted }

    mutating func resume(_ priority: TaskPriority) -> Beginning {
        isSuspended = false
        guard !isBegun, outcome == nil, !isEnding else { return .none }
        isBegun = true
        self.priority = priority
        isOpening = transport == nil
        return isOpening ? .open : .adopted
    }

    mutating func suspend() { isSuspended = true }

    // MARK: Who is inside

    /// Returns false if somebody is there already.
    mutating func enter(_ side: Side) -> Bool {
        switch side {
        case .input:
            defer { isReading = true }
            return !isReading
        case .output:
            defer { isWriting = true }
            return !isWriting
        }
    }

    mutating func leave(_ side: Side) {
        switch side {
        case .input: isReading = false
        case .output: isWriting = false
        }
    }

    mutating func opened(_ result: Result<any Transport, LoadError>, isSecure: Bool) {
        isOpening = false
        switch result {
        case .success(let transport): (self.transport, self.isSecure, isConnected) = (transport, isSecure, true)
        case .failure(let error): fail(error)
        }
    }

    mutating func secured(_ transport: any Transport) { (self.transport, isSecure) = (transport, true) }

    // MARK: The end

    /// How far the stream, or a call on one side of it, has come.
    func phase(_ side: Side) -> LoadError.Phase {
        guard isConnected else { return isBegun ? .connecting : .preparing }
        return isSecuring ? .securing : side == .input ? .receiving : .sending
    }

    /// The first failure is the one.
    mutating func fail(_ error: LoadError) { if outcome == nil { outcome = .failed(error) } }

    struct Settlement: Sendable {
        /// To be closed by whoever gets it.
        var ending: (any Transport)?
        var ends = false
        /// Whoever is inside must look again.
        var waking: [PollSlot] = []
    }

    /// Works out what follows from a change.
    /// - Parameter stop: came from outside. Whoever connects or secures knows better where it struck, and
    ///   is about to say so.
    mutating func settle(_ stop: StopReason?, _ url: URL?) -> Settlement {
        if outcome == nil, stop == nil || !(isOpening || isSecuring) {
            let side: Side = isWriting && !isReading ? .output : .input
            outcome = stop.map { .failed(LoadError($0, phase: phase(side)).at(url)) } ?? ownOutcome
            isStopped = stop != nil
        }
        var settlement = Settlement(waking: takeWaiting())
        guard outcome != nil, !isEnding else { return settlement }
        guard !isOpening, !isReading, !isWriting else {
            if let transport { settlement.waking.append(transport.slot) }
            return settlement
        }
        isEnding = true
        settlement.ends = true
        settlement.ending = transport
        transport = nil
        return settlement
    }

    /// Both directions are done.
    private var ownOutcome: Outcome? {
        switch (input, output) {
        case (.failed(let error), _): .failed(error)
        case (.open, _), (_, .open): nil
        case (_, .failed(let error)): .failed(error)
        default: .finished
        }
    }

    /// Nothing of it is left.
    mutating func over() -> [PollSlot] {
        isOver = true
        return takeWaiting()
    }

    // MARK: Waiting for a change

    mutating func wait(_ slot: PollSlot) { waiting.append(slot) }
    mutating func forget(_ slot: PollSlot) { waiting.removeAll { $0 === slot } }

    mutating func takeWaiting() -> [PollSlot] {
        defer { waiting = [] }
        return waiting
    }
}
