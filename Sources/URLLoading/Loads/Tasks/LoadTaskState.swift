// SPDX-License-Identifier: Apache-2.0

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
    /// The progress of the load, and the owner of its exchange.
    private enum Phase: Sendable {
        /// Not resumed yet.
        case created
        /// The task that `resume` started owns the exchange.
        /// - Parameter isSending: true while it waits to send the rest of the request.
        case driven(isSending: Bool)
        /// The exchange waits for a reader, without an owner.
        case idle(any Exchange)
        /// The task that iterates the body owns the exchange.
        case read
        /// The load is being ended and gets no further owner.
        case ending
        case ended(Outcome)
    }
    /// The consumer of the body. A body has one.
    private enum BodyUse: Sendable {
        case none
        /// A consumer takes the body as a sequence.
        case sequence
        /// Consumers wait for the whole body; `nil` until its first bytes have been gathered.
        case whole(Data?)
        /// The rest of the body is read without being kept.
        /// - Parameter error: the error of a consumer that asks for the whole body.
        case dropped(LoadError)
        /// A download has taken over the load of a data task; the data task's controls have no effect.
        case download
    }
    private var phase = Phase.created
    private var use = BodyUse.none
    /// True once a caller waits for the end of the load without being the body's consumer. The driver then reads the
    /// body to its end. It keeps the bytes for a later consumer as far as a whole body may be collected, and drops them
    /// beyond that.
    private var mustEnd = false
    /// The number of chunks that were asked for; tells whether a consumer reads.
    private(set) var takes = 0
    private(set) var isSuspended = true
    private(set) var response: Response?
    /// Bytes that were read before a consumer asked for them. They are copied into one buffer, because a chunk of a few
    /// bytes would keep the connection's whole buffer alive.
    private var ahead: ChunkStorage?
    private var aheadCount = 0
    /// The number of handles. A data task that becomes a download has two.
    private var handles = 0
    private(set) var trailers = Headers()
    private var waiting = Waiting()
    var counts = LoadCounts()
    /// See `LoadSnapshot.rawPriority`.
    var priority: TaskPriority.RawValue?
    var listeners: [EventQueue] = []
    var metrics: LoadMetrics?

    var isBegun: Bool { if case .created = phase { false } else { true } }
    var isSending: Bool { if case .driven(let isSending) = phase { isSending } else { false } }
    var outcome: Outcome? { if case .ended(let outcome) = phase { outcome } else { nil } }
    var hasBecomeDownload: Bool { if case .download = use { true } else { false } }
    private var isUnclaimed: Bool { if case .none = use { true } else { false } }
    /// Whether the body has no consumer: none has come yet, or it has left.
    private var lacksConsumer: Bool {
        switch use {
        case .none, .dropped: true
        case .sequence, .whole, .download: false
        }
    }
    /// Whether the driver reads to the end of the body although no consumer asks for it.
    private var isReadToEnd: Bool { mustEnd && lacksConsumer }
    /// True while the load waits for the consumer of its body.
    var waitsForReader: Bool { if case .idle = phase { true } else { false } }
    /// True while the load waits for a consumer, without one in sight, and a caller waits for its events.
    var waitsForReaderWithListeners: Bool { waitsForReader && lacksConsumer && !listeners.isEmpty }

    enum Outcome: Sendable {
        case finished
        case failed(LoadError)
        var error: LoadError? { if case .failed(let error) = self { error } else { nil } }
    }

    // MARK: Controls

    /// Returns true if this call starts the load.
    mutating func resume(_ priority: TaskPriority) -> Bool {
        isSuspended = false
        guard case .created = phase else { return false }
        phase = .driven(isSending: false)
        self.priority = priority.rawValue
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
        switch use {
        case .whole: .read(.max)
        case .none where mustEnd, .dropped where mustEnd: .read(.max)
        case .sequence, .dropped: .leave
        case .none, .download: .read(max(0, limit - aheadCount))
        }
    }

    /// Notes that the driver waits to send, not to read. Returns false if a consumer has asked for the body meanwhile.
    mutating func beginSending() -> Bool {
        guard isUnclaimed, !mustEnd, case .driven = phase else { return false }
        phase = .driven(isSending: true)
        return true
    }

    mutating func endSending() {
        if case .driven = phase { phase = .driven(isSending: false) }
    }

    /// Keeps a chunk for a later consumer.
    /// - Parameters:
    ///   - readAhead: the maximum number of bytes kept before a consumer asks for the body.
    ///   - limit: the maximum length of the whole body, in bytes.
    mutating func keep(_ chunk: Chunk, readAhead: Int, limit: Int) throws(LoadError) -> Waiting {
        switch use {
        case .whole: break
        case .dropped: return Waiting()
        case .none where mustEnd && chunk.count > limit - aheadCount:
            (ahead, aheadCount) = (nil, 0)
            use = .dropped(.tooLarge(limit))
            return Waiting()
        case .none, .sequence, .download:
            append(chunk, readAhead)
            return waiting.take { $0 == .chunk }
        }
        var data = gather()
        // The state must not hold a second reference, which would make `append` copy the body.
        use = .whole(nil)
        defer { use = .whole(data) }
        guard chunk.count <= limit - data.count else { throw .tooLarge(limit) }
        data.append(chunk)
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

    /// Returns the whole body as far as it has come, beginning with the bytes read ahead.
    private mutating func gather() -> Data {
        if case .whole(let data?) = use { return data }
        var data = Data()
        data.reserveCapacity(max(aheadCount, Int(min(response?.expectedLength ?? 0, 4 << 20))))
        if let chunk = takeAhead() { data.append(chunk) }
        use = .whole(data)
        return data
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
        if case .whole = use { return .stay }
        if isReadToEnd { return .stay }
        if handles == 0 { return .pointless }
        phase = .idle(exchange)
        return .left
    }

    // MARK: The reader

    /// Takes the body as a sequence. Returns true only for the first call, and only if no consumer waits for the whole
    /// body.
    mutating func claim() -> Bool {
        guard isUnclaimed else { return false }
        use = .sequence
        return true
    }

    /// The step that lets a load end which has no consumer of its body.
    enum Ending: Sendable {
        /// The caller must start a driver that reads on.
        case drive(any Exchange)
        /// The driver waits to send, and must be woken.
        case wake
        case none
    }

    /// Notes that a caller waits for the end of the load.
    mutating func requireEnd() -> Ending {
        mustEnd = true
        return beginReadingToEnd()
    }

    /// Notes that the consumer of the sequence has left: every reference to the sequence is gone.
    mutating func leaveSequence() -> Ending {
        guard case .sequence = use else { return .none }
        use = .dropped(.bodyUnavailable)
        return beginReadingToEnd()
    }

    private mutating func beginReadingToEnd() -> Ending {
        guard isReadToEnd else { return .none }
        if isSending { return .wake }
        guard case .idle(let exchange) = phase else { return .none }
        phase = .driven(isSending: false)
        return .drive(exchange)
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
        takes &+= 1
        if case .ended(.failed(let error)) = phase, error.reason == .cancelled { return .failed(error) }
        if let chunk = takeAhead() { return .chunk(chunk) }
        switch phase {
        case .ended(.finished): return .end
        case .ended(.failed(let error)): return .failed(error)
        case .idle(let exchange):
            phase = .read
            return .pull(exchange)
        // A body has one reader, and that reader is reading.
        case .read: return .failed(.bodyUnavailable)
        case .created, .driven, .ending:
            waiting.add(.chunk, slot)
            return .wait
        }
    }

    /// Returns the exchange after the reader has got its chunk. Returns false if the load was stopped meanwhile: a stop
    /// leaves an owned exchange to its owner, so the reader must end the load.
    mutating func putBack(_ exchange: any Exchange, isStopped: Bool) -> Bool {
        phase = isStopped ? .ending : .idle(exchange)
        return !isStopped
    }

    // MARK: Consumers of the whole body

    /// Registers a consumer of the whole body. Returns whether the driver must be woken.
    mutating func registerWholeConsumer() -> Bool {
        if isUnclaimed { use = .whole(nil) }
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
        switch use {
        case .none: use = .whole(nil)
        case .whole: break
        case .sequence, .download: return .failed(.bodyUnavailable)
        case .dropped(let error): return .failed(error)
        }
        switch phase {
        case .ended(.failed(let error)): return .failed(error)
        case .ended(.finished): return .data(gather())
        case .idle(let exchange):
            waiting.add(.end, slot)
            phase = .driven(isSending: false)
            return .drive(exchange)
        case .created, .driven, .read, .ending:
            waiting.add(.end, slot)
            return .wait
        }
    }

    // MARK: The end

    /// Takes a load without an owner in order to end it; `nil` if its owner will end it, or it has ended.
    mutating func takeUnowned() -> Unowned? {
        switch phase {
        case .created:
            phase = .ending
            return Unowned(exchange: nil)
        case .idle(let exchange):
            phase = .ending
            return Unowned(exchange: exchange)
        case .driven, .read, .ending, .ended: return nil
        }
    }

    struct Unowned: Sendable {
        let exchange: (any Exchange)?
    }

    /// Records the outcome and returns the waiters to wake.
    mutating func end(_ outcome: Outcome, _ trailers: Headers) -> Waiting {
        phase = .ended(outcome)
        self.trailers = trailers
        if outcome.error?.reason == .cancelled { (ahead, aheadCount) = (nil, 0) }
        listeners = []
        return waiting.take { _ in true }
    }

    /// True if the load can have no consumer any more: it has no handle, and no reader of events that could still get
    /// one. A load without an owner waits for a reader of its body, which needs a handle.
    private var isAbandoned: Bool {
        guard handles == 0 else { return false }
        return switch phase {
        case .created, .idle: true
        case .driven, .read, .ending: listeners.isEmpty
        case .ended: false
        }
    }

    mutating func addHandle() { handles += 1 }

    /// Removes a handle.
    /// - Parameter needsHandle: true if readers of events alone do not keep the load running.
    /// - Returns: whether the load has no reason to continue.
    mutating func removeHandle(needsHandle: Bool) -> Bool {
        handles -= 1
        return isAbandoned || (needsHandle && handles == 0 && outcome == nil)
    }

    /// Removes a reader of events. Returns whether the load has no reason to continue.
    mutating func forget(_ listener: EventQueue) -> Bool {
        listeners.removeAll { $0 === listener }
        return isAbandoned
    }

    /// Hands the load over to a download and returns the waiters to wake, because the body is not available to them any
    /// more; `nil` if a consumer has taken the body as a sequence.
    mutating func becomeDownload() -> Waiting? {
        switch use {
        case .sequence, .dropped: return nil
        case .none, .whole, .download: break
        }
        use = .download
        return waiting.take { $0 == .end }
    }

    /// Claims the body for a stream task. Returns false if a consumer has asked for the body.
    mutating func becomeStream() -> Bool {
        claim()
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
