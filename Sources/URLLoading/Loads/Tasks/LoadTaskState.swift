// The state of a load task as a value: the owner of its exchange, the bytes read ahead, the outcome. Each transition is
// one method, called under the lock of `TaskDriver`; its consequences (wake, end) are returned and carried out after
// the lock is released.
//
// Rule 1: an exchange has one owner. Only the owner reads from it, and only the owner emits events.
// Rule 2: the caller that finds a stopped load without an owner ends the load.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct LoadTaskState: Sendable {
    enum Owner: Sendable {
        /// No owner: not started, or waiting for a reader.
        case none
        /// The task that `resume` started.
        case driver
        /// The task that iterates the body.
        case reader
        /// Final: the load is being ended and gets no further owner.
        case ending
    }
    private(set) var owner = Owner.none
    private(set) var isBegun = false
    private(set) var isSuspended = true
    private(set) var response: Response?
    private(set) var outcome: Outcome?
    /// The exchange while it has no owner.
    private var exchange: (any Exchange)?
    /// Bytes that were read before a consumer asked for them. They are copied into one buffer, because a chunk of a few
    /// bytes would keep the connection's whole buffer alive.
    private var ahead: ChunkStorage?
    private var aheadCount = 0
    /// True once a consumer has taken the body as a sequence.
    private var isClaimed = false
    /// True once a consumer waits for the whole body.
    private var isWhole = false
    /// True while the driver waits to send the rest of the request.
    private(set) var isSending = false
    private var whole: Data?
    /// The number of handles. A data task that becomes a download has two.
    private var handles = 0
    /// True once a download has taken over the load of a data task; the data task's controls have no effect then.
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

    // MARK: Controls

    /// Returns true if this call starts the load.
    mutating func resume(_ priority: TaskPriority) -> Bool {
        isSuspended = false
        guard !isBegun, outcome == nil, owner == .none else { return false }
        isBegun = true
        owner = .driver
        self.priority = priority
        return true
    }

    mutating func suspend() { isSuspended = true }

    // MARK: The driver

    /// Records the response and returns the waiters for it.
    mutating func respond(_ response: Response) -> Waiting {
        self.response = response
        return waiting.take { $0 == .response }
    }

    enum Demand: Sendable {
        /// Read at most this many bytes; 0 only checks for the end of the body.
        case read(Int)
        /// Stop reading: a reader has taken the body, or none can come any more.
        case leave
    }

    /// Returns the driver's next step.
    func demand(upTo limit: Int) -> Demand {
        if isWhole { return .read(.max) }
        return isClaimed ? .leave : .read(max(0, limit - aheadCount))
    }

    /// Notes that the driver waits to send, not to read. Returns false if a consumer has asked for the body meanwhile.
    mutating func beginSending() -> Bool {
        isSending = !isWhole && !isClaimed
        return isSending
    }

    mutating func endSending() { isSending = false }

    /// Keeps a chunk for a later consumer.
    /// - Parameters:
    ///   - readAhead: the maximum number of bytes kept before a consumer asks for the body.
    ///   - limit: the maximum length of the whole body, in bytes.
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

    /// Moves the bytes read ahead to the beginning of the whole body.
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
        /// The driver must read on.
        case stay
        /// The rest of the body can have no reader any more.
        case pointless
    }

    /// Offers the exchange to a reader, on behalf of the driver.
    mutating func leave(_ exchange: any Exchange) -> Leaving {
        if isWhole { return .stay }
        if handles == 0 { return .pointless }
        self.exchange = exchange
        owner = .none
        return .left
    }

    // MARK: The reader

    /// Takes the body as a sequence. Returns true only for the first call, and only if no consumer waits for the whole
    /// body.
    mutating func claim() -> Bool {
        guard !isClaimed, !isWhole, !hasBecomeDownload else { return false }
        isClaimed = true
        return true
    }

    enum Taken: Sendable {
        case chunk(Chunk)
        case end
        case failed(LoadError)
        /// The caller owns the exchange until `putBack`.
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
        if owner == .none, let exchange {
            self.exchange = nil
            owner = .reader
            return .pull(exchange)
        }
        // A body has one reader, and that reader is reading.
        if owner == .reader { return .failed(.bodyUnavailable) }
        waiting.add(.chunk, slot)
        return .wait
    }

    /// Returns the exchange after the reader has got its chunk. Returns false if the load was stopped meanwhile: a stop
    /// leaves an owned exchange to its owner, so the reader must end the load.
    mutating func putBack(_ exchange: any Exchange, isStopped: Bool) -> Bool {
        guard !isStopped else {
            owner = .ending
            return false
        }
        self.exchange = exchange
        owner = .none
        return true
    }

    // MARK: Consumers of the whole body

    /// Registers a consumer of the whole body. Returns whether the driver must be woken.
    mutating func wantWhole() -> Bool {
        if !isClaimed { isWhole = true }
        return isSending
    }

    enum Whole: Sendable {
        case data(Data)
        case failed(LoadError)
        /// The caller must start a driver that reads on.
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
        guard owner == .none, let exchange else { return .wait }
        self.exchange = nil
        owner = .driver
        return .drive(exchange)
    }

    // MARK: The end

    /// Takes a load without an owner in order to end it; `nil` if its owner will end it, or it has ended.
    mutating func seize() -> Seized? {
        guard owner == .none, outcome == nil else { return nil }
        owner = .ending
        defer { exchange = nil }
        return Seized(exchange: exchange)
    }

    struct Seized: Sendable {
        let exchange: (any Exchange)?
    }

    /// Records the outcome and returns the waiters to wake.
    mutating func end(_ outcome: Outcome, _ trailers: Headers) -> Waiting {
        owner = .ending
        self.outcome = outcome
        exchange = nil
        self.trailers = trailers
        if outcome.error?.reason == .cancelled { (ahead, aheadCount) = (nil, 0) }
        listeners = []
        return waiting.take { _ in true }
    }

    /// True if the load can have no consumer any more: it has no handle, and no reader of events that could still get
    /// one. A load without an owner waits for a reader of its body, which needs a handle.
    private var isAbandoned: Bool { handles == 0 && outcome == nil && (owner == .none || listeners.isEmpty) }

    mutating func addHandle() { handles += 1 }

    /// Removes a handle.
    /// - Parameter needsHandle: true if readers of events alone do not keep the load running.
    /// - Returns: whether the load has no reason to continue.
    mutating func removeHandle(needsHandle: Bool) -> Bool {
        handles -= 1
        return isAbandoned || (needsHandle && handles == 0)
    }

    /// Removes a reader of events. Returns whether the load has no reason to continue.
    mutating func forget(_ listener: EventQueue) -> Bool {
        listeners.removeAll { $0 === listener }
        return isAbandoned
    }

    /// Hands the load over to a download and returns the waiters to wake, because the body is not available to them any
    /// more; `nil` if a consumer has taken the body as a sequence.
    mutating func becomeDownload() -> Waiting? {
        guard !isClaimed else { return nil }
        hasBecomeDownload = true
        return waiting.take { $0 == .end }
    }

    /// Claims the body for a stream task. Returns false if a consumer has asked for the body.
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

    /// The waiters, each with its event, because a wake-up without an event costs as much as one with it. One waiter is
    /// the common case and needs no array.
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
