// What a handle is at a moment, as a value: who owns its exchange, what was read ahead, how it ended.
// Every transition is one method, called under the lock of `TaskDriver`; what follows from it is done
// after the lock, by whoever the returned value says.
//
// Rule 1: an exchange has one owner. Only the owner reads, and only the owner emits events.
// Rule 2: whoever finds a load stopped and ownerless ends it on the spot.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct LoadTaskState: Sendable {
    enum Owner: Sendable {
        /// Not begun, or waiting for a reader.
        case nobody
        /// The task that `resume` made.
        case driver
        /// Whoever iterates the body.
        case reader
        /// Nobody any more: the load is being ended.
        case ending
    }
    private(set) var owner = Owner.nobody
    private(set) var isBegun = false
    private(set) var isSuspended = true
    private(set) var response: Response?
    private(set) var outcome: Outcome?
    /// Kept while nobody owns it.
    private var exchange: (any Exchange)?
    /// Read, and not yet taken: copied together, for a chunk of a few bytes would hold on to the
    /// connection's whole buffer.
    private var ahead: ChunkStorage?
    private var aheadCount = 0
    /// Somebody has taken the body as a sequence.
    private var isClaimed = false
    /// Somebody waits for the whole.
    private var isWhole = false
    /// The driver waits to send the rest of the request.
    private(set) var isSending = false
    private var whole: Data?
    /// How many handles there are. A data task that becomes a download has two.
    private var handles = 0
    /// A download goes on with what a data task began: whoever held that has nothing to say any more.
    private(set) var hasBecomeDownload = false
    private(set) var trailers = Headers()
    private var waiting = Waiting()
    var counts = Counts()
    var priority: TaskPriority?
    var listeners: [EventQueue] = []
    var metrics: LoadMetrics?

    enum Outcome: Sendable {
        case finished
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    struct Counts: Sendable {
        var sent: Int64 = 0
        var received: Int64 = 0
        var expectedToSend: Int64?
        var expectedToReceive: Int64?
    }

    // MARK: The controls

    /// Returns true if the load begins with this.
    mutating func resume(_ priority: TaskPriority) -> Bool {
        isSuspended = false
        guard !isBegun, outcome == nil, owner == .nobody else { return false }
        isBegun = true
        owner = .driver
        self.priority = priority
        return true
    }

    mutating func suspend() { isSuspended = true }

    // MARK: The driver

    /// The head has come.
    mutating func respond(_ response: Response) -> Waiting {
        self.response = response
        return waiting.take { $0 == .response }
    }

    enum Demand: Sendable {
        /// Read at most so many bytes; 0: only look for the end.
        case read(Int)
        /// A reader is there, or nobody may be any more.
        case leave
    }

    /// What the driver is to do next.
    func demand(upTo limit: Int) -> Demand {
        if isWhole { return .read(.max) }
        return isClaimed ? .leave : .read(max(0, limit - aheadCount))
    }

    /// The driver waits to send, not to read. Returns false if somebody has asked for the body meanwhile.
    mutating func beginSending() -> Bool {
        isSending = !isWhole && !isClaimed
        return isSending
    }

    mutating func endSending() { isSending = false }

    /// A chunk for whoever comes.
    /// - Parameters:
    ///   - readAhead: how much may come before anybody asks.
    ///   - limit: how much the whole may be.
    mutating func keep(_ chunk: Chunk, readAhead: Int, limit: Int) throws(LoadError) -> Waiting {
        guard isWhole else {
            append(chunk, readAhead)
            return waiting.take { $0 == .chunk }
        }
        gather()
        guard chunk.count <= limit - (whole?.count ?? 0) else { throw .tooLarge(limit) }
        whole?.append(chunk)
        return Waiting()
    }

    private mutating func append(_ chunk: Chunk, _ readAhead: Int) {
        let needed = aheadCount + chunk.count
        var storage = ahead
        if storage == nil || storage?.capacity ?? 0 < needed {
            let announced = Int(min(response?.expectedLength ?? 0, Int64(readAhead)))
            let grown = ChunkStorage(capacity: max(needed, announced, aheadCount * 2))
            if let storage { grown.base.copyMemory(from: storage.base, byteCount: aheadCount) }
            storage = grown
        }
        chunk.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress {
                storage?.base.advanced(by: aheadCount).copyMemory(from: start, byteCount: bytes.count)
            }
        }
        ahead = storage
        aheadCount = needed
    }

    /// What was read ahead becomes the beginning of the whole.
    private mutating func gather() {
        guard whole == nil else { return }
        var data = Data()
        data.reserveCapacity(max(aheadCount, Int(min(response?.expectedLength ?? 0, 4 << 20))))
        if let chunk = takeAhead() { data.append(chunk) }
        whole = data
    }

    private mutating func takeAhead() -> Chunk? {
        guard let storage = ahead else { return nil }
        defer { (ahead, aheadCount) = (nil, 0) }
        return Chunk(storage: storage, range: 0..<aheadCount)
    }

    enum Leaving: Sendable {
        case left
        /// There is more to read after all.
        case stay
        /// Nobody will ever read the rest.
        case pointless
    }

    /// The driver wants to leave the exchange to a reader.
    mutating func leave(_ exchange: any Exchange) -> Leaving {
        if isWhole { return .stay }
        if handles == 0 { return .pointless }
        self.exchange = exchange
        owner = .nobody
        return .left
    }

    // MARK: The reader

    /// Takes the body as a sequence. Returns true once, and only if nobody has asked for the whole.
    mutating func claim() -> Bool {
        guard !isClaimed, !isWhole, !hasBecomeDownload else { return false }
        isClaimed = true
        return true
    }

    enum Taken: Sendable {
        case chunk(Chunk)
        case end
        case failed(LoadError)
        /// Yours until `putBack`.
        case pull(any Exchange)
        case wait
    }

    mutating func take(_ slot: PollSlot?) -> Taken {
        if case .failed(let error)? = outcome, error.reason == .cancelled { return .failed(error) }
        if let chunk = takeAhead() { return .chunk(chunk) }
        switch outcome {
        case .finished?: return .end
        case .failed(let error)?: return .failed(error)
        case nil: break
        }
        if owner == .nobody, let exchange {
            self.exchange = nil
            owner = .reader
            return .pull(exchange)
        }
        // The one reader is inside already.
        if owner == .reader { return .failed(.bodyUnavailable) }
        waiting.add(.chunk, slot)
        return .wait
    }

    /// The reader has its chunk. Returns false if the load was stopped meanwhile by somebody who found
    /// it owned: the reader ends it.
    mutating func putBack(_ exchange: any Exchange, isStopped: Bool) -> Bool {
        guard !isStopped else {
            owner = .ending
            return false
        }
        self.exchange = exchange
        owner = .nobody
        return true
    }

    // MARK: Those who wait for the whole

    /// Somebody will wait for the whole. Returns whether the driver must be told.
    mutating func wantWhole() -> Bool {
        if !isClaimed { isWhole = true }
        return isSending
    }

    enum Whole: Sendable {
        case data(Data)
        case failed(LoadError)
        /// A driver must read on.
        case drive(any Exchange)
        case wait
    }

    mutating func takeWhole(_ slot: PollSlot?) -> Whole {
        guard !isClaimed, !hasBecomeDownload else { return .failed(.bodyUnavailable) }
        switch outcome {
        case .failed(let error)?: return .failed(error)
        case .finished?:
            isWhole = true
            gather()
            return .data(whole ?? Data())
        case nil: break
        }
        isWhole = true
        waiting.add(.end, slot)
        guard owner == .nobody, let exchange else { return .wait }
        self.exchange = nil
        owner = .driver
        return .drive(exchange)
    }

    // MARK: The end

    /// Takes an ownerless load to end it; `nil` if its owner will, or it has ended.
    mutating func seize() -> Seized? {
        guard owner == .nobody, outcome == nil else { return nil }
        owner = .ending
        defer { exchange = nil }
        return Seized(exchange: exchange)
    }

    struct Seized: Sendable {
        let exchange: (any Exchange)?
    }

    /// Returns whom to wake.
    mutating func end(_ outcome: Outcome, _ trailers: Headers) -> Waiting {
        owner = .ending
        self.outcome = outcome
        exchange = nil
        self.trailers = trailers
        if outcome.error?.reason == .cancelled { (ahead, aheadCount) = (nil, 0) }
        listeners = []
        return waiting.take { _ in true }
    }

    /// Whether nothing can come of the load: there is no handle, and no reader of the events that it still has. A load
    /// without an owner waits for a reader of its body, which needs a handle.
    private var isAbandoned: Bool { handles == 0 && outcome == nil && (owner == .nobody || listeners.isEmpty) }

    mutating func addHandle() { handles += 1 }

    /// A handle is gone.
    /// - Parameter needsHandle: readers of events are no reason to go on.
    /// - Returns: whether the load has no reason to go on.
    mutating func removeHandle(needsHandle: Bool) -> Bool {
        handles -= 1
        return isAbandoned || (needsHandle && handles == 0)
    }

    /// A reader of events is gone. Returns whether the load has no reason to go on.
    mutating func forget(_ listener: EventQueue) -> Bool {
        listeners.removeAll { $0 === listener }
        return isAbandoned
    }

    /// Returns whom to wake: nobody gets the body any more; `nil` if somebody has taken it as a sequence.
    mutating func becomeDownload() -> Waiting? {
        guard !isClaimed else { return nil }
        hasBecomeDownload = true
        return waiting.take { $0 == .end }
    }

    /// Returns false if somebody has asked for the body.
    mutating func becomeStream() -> Bool {
        guard !isClaimed, !isWhole else { return false }
        isClaimed = true
        return true
    }

    // MARK: Waiting

    mutating func waitForEnd(_ slot: PollSlot) { waiting.add(.end, slot) }
    mutating func waitForResponse(_ slot: PollSlot) { waiting.add(.response, slot) }
    mutating func takeReaders() -> Waiting { waiting.take { $0 == .chunk } }
    mutating func forget(_ slot: PollSlot) { waiting.forget(slot) }

    /// Those who wait, and for what: a wake-up that brings nothing costs as much as one that does. One is
    /// the rule.
    struct Waiting: Sendable {
        enum Kind: Sendable { case response, chunk, end }
        private var first: (kind: Kind, slot: PollSlot)?
        private var others: [(kind: Kind, slot: PollSlot)] = []

        mutating func add(_ kind: Kind, _ slot: PollSlot?) {
            guard let slot else { return }
            if first == nil { first = (kind, slot) } else { others.append((kind, slot)) }
        }

        mutating func take(_ isWanted: (Kind) -> Bool) -> Waiting {
            var taken = Waiting()
            if let first, isWanted(first.kind) {
                taken.first = first
                self.first = nil
            }
            guard !others.isEmpty else { return taken }
            taken.others = others.filter { isWanted($0.kind) }
            others.removeAll { isWanted($0.kind) }
            return taken
        }

        mutating func forget(_ slot: PollSlot) {
            if first?.slot === slot { first = nil }
            if !others.isEmpty { others.removeAll { $0.slot === slot } }
        }

        func wake() {
            first?.slot.wake()
            for other in others { other.slot.wake() }
        }
    }
}
