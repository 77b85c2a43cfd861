// SPDX-License-Identifier: Apache-2.0

// Carries out a `RangePlan`: workers, each with one request at a time, write their parts into one file. The first worker
// continues the response that the task has; the others send requests for ranges, each under a condition (If-Range), and
// write nothing before the response has named exactly the range that was asked for.
//
// Each worker has a load context of its own, because an idle timeout ends the wait of one worker and not the download.
// Stops and suspensions of the task are passed on to all of them (`stop`, `setSuspended`). An idle stop, which alone can
// be revoked, also ends the wait of a worker whose bytes another takes over (`abandon`).

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class ParallelDownload: Sendable {
    let length: Int64
    let validator: ResumeValidator
    let file: FileWriter
    let ranges: FileRanges
    private let count: Int
    let clock: LoopClock
    let state: Lock<State>

    struct Worker: Sendable {
        let context: LoadContext
        /// The part that it loads; `nil` while it waits for one.
        var part: Int?
        var ending = Ending.none
    }

    /// Whether the request of a worker is ended because another worker is to take over its bytes.
    enum Ending: Sendable {
        case none
        /// Its context is about to be stopped.
        case stopping
        case stopped
    }

    struct State: Sendable {
        var plan: RangePlan
        var workers: [Worker] = []
        /// Workers that wait for bytes to load.
        var waiting: [PollSlot] = []
        /// The error that ends the download.
        var failure: LoadError?
        /// The error of the last worker that has left.
        var last: LoadError?
        /// No request is sent before this moment, because a server has said so (Retry-After).
        var notBefore: Int64 = 0
        /// How often a part has stalled since the last byte of any part.
        var stalls = 0
        /// The number of workers that may ask again because the task was suspended meanwhile.
        var forgiven = 0
        /// Bytes that were received and not reported yet, and whether a worker reports them.
        var unreported = 0
        var isReporting = false

        mutating func wake() -> [PollSlot] {
            defer { waiting = [] }
            return waiting
        }
        var isOver: Bool { failure != nil || plan.isComplete }
    }

    /// - Parameters:
    ///   - held: the bytes that the file has.
    ///   - marks: those that are on the disk.
    init(
        _ file: FileWriter, length: Int64, held: ByteRanges, marks: [RangeMark], _ validator: ResumeValidator,
        _ options: ParallelRanges, _ clock: LoopClock
    ) {
        (self.file, self.length, self.validator, self.clock) = (file, length, validator, clock)
        ranges = FileRanges(file, length: length)
        ranges.resume(from: marks)
        let plan = RangePlan(length: length, held: held, count: options.count, least: options.minimumPartSize)
        let missing = length - held.total
        count = max(1, min(options.count, Int(clamping: missing / options.minimumPartSize)))
        state = Lock(State(plan: plan))
    }

    // MARK: Controls

    /// Passes a stop of the task on to all workers.
    func stop(_ reason: StopReason) {
        for worker in state.withLock({ $0.workers }).dropFirst() { worker.context.stop(reason) }
    }

    /// Passes a suspension of the task on to all workers.
    func setSuspended(_ isSuspended: Bool) {
        for worker in state.withLock({ $0.workers }).dropFirst() { worker.context.handle.setSuspended(isSuspended) }
    }

    // MARK: Tokens

    /// The number of bytes that are known to be on the disk.
    var countOnDisk: Int64 { ranges.marks.reduce(0) { $0 + $1.end - $1.begin } }

    /// Adds the written ranges to a token. Reads up to 64 KiB of each.
    /// - Returns: the number of bytes that are written.
    func describe(_ record: inout ResumeToken.Record) throws(IOFailure) -> Int64 {
        let written = state.withLock { $0.plan.written }
        let marks = ranges.marks
        let prefix = marks.first.flatMap { $0.begin == 0 ? $0 : nil }
        record.offset = written.prefix
        record.tail = try file.tail(before: written.prefix)
        record.ranges = []
        for range in written.ranges where range.lowerBound > 0 { record.ranges?.append(try file.mark(range)) }
        record.mark = prefix.map { DiskMark(offset: $0.end, tail: $0.tail) }
        record.syncedRanges = marks.filter { $0.begin > 0 }
        return written.total
    }

    // MARK: The run

    /// Loads what is missing.
    /// - Parameters:
    ///   - first: the response that the task has.
    ///   - offset: its first byte in the file.
    ///   - report: called after bytes were written, by one worker at a time.
    ///   - wasSuspended: returns once whether the task was suspended since the last call.
    func run(
        _ first: any Exchange, at offset: Int64, _ hop: Hop, for context: LoadContext,
        wasSuspended: @escaping @Sendable () -> Bool,
        report: @escaping @Sendable (Int) async -> LoadError?
    ) async throws(LoadError) {
        try await begin()
        context.events?.allowOverlap()
        let most = max(1, min(count, context.core.configuration.connections.maximumPerHost))
        var hop = hop
        hop.purpose = .part
        let requests = Requests(hop: hop, wasSuspended: wasSuspended, report: report)
        let part = state.withLock { state in
            state.workers = [Worker(context: context)]
            let part = state.plan.first(at: offset, now: clock.now())
            state.workers[0].part = part?.id
            return part
        }
        let children = (1..<max(most, 1)).map { _ in LoadContext(partOf: context) }
        state.withLock { state in
            for child in children { state.workers.append(Worker(context: child)) }
        }
        for child in children {
            guard context.core.registry.enter(child.handle, inPlaceOf: context.handle) else { continue }
            child.handle.setSuspended(context.isSuspended)
        }
        if let reason = context.stopReason, reason != .idle { stop(reason) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.work(0, part.map { (first, $0) }, requests) }
            for index in children.indices { group.addTask { await self.work(index + 1, nil, requests) } }
        }
        for child in children { child.endPart() }
        first.release()
        _ = context.mayRetry()
        try await end(context)
    }

    /// What the workers need to send requests, and to tell of their bytes.
    struct Requests: Sendable {
        let hop: Hop
        let wasSuspended: @Sendable () -> Bool
        let report: @Sendable (Int) async -> LoadError?
    }

    /// Writes the journal before any byte: a file of the size of its content would count as complete.
    private func begin() async throws(LoadError) {
        try await access { [self] () throws(IOFailure) in
            try ranges.wrote(state.withLock { $0.plan.written.ranges }, now: clock.coarseNow())
        }
    }

    private func end(_ context: LoadContext) async throws(LoadError) {
        if let reason = context.stopReason { throw LoadError(reason, phase: .receiving) }
        let (isComplete, failure, last) = state.withLock { ($0.plan.isComplete, $0.failure, $0.last) }
        if let failure { throw failure }
        guard isComplete else {
            throw last
                ?? LoadError(.truncated, phase: .receiving, party: .remote, detail: "parts of the file are missing")
        }
        try await access { [self] () throws(IOFailure) in try ranges.complete() }
    }

    private func access(_ use: @escaping @Sendable () throws(IOFailure) -> Void) async throws(LoadError) {
        let done = await BlockingThreads.files.call(.never) { Result { () throws(IOFailure) in try use() } }
        if case .failure(let error)? = done { throw unwritable(error) }
    }

    func unwritable(_ error: IOFailure) -> LoadError {
        LoadError(.cannotWriteFile, phase: .receiving, party: .system, detail: "\(file.path): \(error.words)")
    }

    // MARK: A worker

    /// The end of a worker's request.
    enum Outcome: Sendable {
        /// Its bytes are written, or another worker has taken them over.
        case done
        /// The response is not the requested part: its bytes are left to the others.
        case refused(LoadError, wait: Int64?)
        /// - Parameter hasMoved: whether it has brought bytes.
        case failed(LoadError, hasMoved: Bool)
    }

    private func work(_ index: Int, _ first: (any Exchange, RangePlan.Part)?, _ requests: Requests) async {
        let context = state.withLock { $0.workers[index].context }
        var retries: BackoffPlan?
        var given = first
        working: while true {
            var next = given?.1
            if next == nil { next = await nextPart(index, context) }
            guard let part = next else { break }
            let outcome = await load(part, given?.0, context, requests)
            given = nil
            let isAbandoned = await leave(part, index, context)
            switch outcome {
            case .done: retries = nil
            case .refused(let error, let wait):
                note(error, wait: wait)
                break working
            case .failed(let error, let hasMoved):
                // Another worker waits for the bytes, or the download is over.
                if isAbandoned, error.reason == .idleTimeout { continue }
                note(error, wait: nil)
                if error.endsAllParts { fail(error) }
                if hasMoved { retries = nil }
                guard await mayRepeat(after: error, &retries, context, requests) else { break working }
            }
        }
        for slot in state.withLock({ $0.wake() }) { slot.wake() }
        _ = context.mayRetry()
    }

    /// Ends a part, whose missing bytes are now for the others.
    /// - Returns: whether it was abandoned. The worker's context is then usable again.
    private func leave(_ part: RangePlan.Part, _ index: Int, _ context: LoadContext) async -> Bool {
        let (isAbandoned, waiting, others) = state.withLock { state in
            state.plan.leave(part.id)
            state.workers[index].part = nil
            // Their responses would bring nothing any more.
            let others = state.isOver ? state.abandonAll() : []
            return (state.workers[index].ending != .none, state.wake(), others)
        }
        for slot in waiting { slot.wake() }
        for other in others { abandon(other) }
        guard isAbandoned else { return false }
        // The stop must not end the wait for another part.
        _ = await Poller.shared.wait(until: .never) { slot -> Void? in
            state.withLock { state in
                guard state.workers[index].ending == .stopping else {
                    state.workers[index].ending = .none
                    return ()
                }
                state.waiting.append(slot)
                return nil
            }
        } forget: { slot in
            state.withLock { $0.waiting.removeAll { $0 === slot } }
        }
        _ = context.mayRetry()
        return true
    }

    /// Ends the wait of a worker that was marked as abandoned.
    private func abandon(_ index: Int) {
        let context = state.withLock { $0.workers[index].context }
        context.stop(.idle)
        let waiting = state.withLock { state in
            state.workers[index].ending = .stopped
            return state.wake()
        }
        for slot in waiting { slot.wake() }
    }

    private func note(_ error: LoadError, wait: Int64?) {
        state.withLock { state in
            state.last = error
            if let wait { state.notBefore = max(state.notBefore, clock.now() &+ wait) }
        }
    }

    /// Ends the download with an error that no other request would avoid.
    func fail(_ error: LoadError) {
        let (waiting, others) = state.withLock { state in
            if state.failure == nil { state.failure = error }
            return (state.wake(), state.abandonAll())
        }
        for slot in waiting { slot.wake() }
        for other in others { abandon(other) }
    }

    /// Whether a worker may send another request after a failure: by the retry policy, whose count begins anew with each
    /// byte of progress; or because the task was suspended, and its server has closed the connections meanwhile.
    private func mayRepeat(
        after error: LoadError, _ retries: inout BackoffPlan?, _ context: LoadContext, _ requests: Requests
    ) async -> Bool {
        guard state.withLock({ !$0.isOver }), context.mayRetry() else { return false }
        if [.connectionLost, .truncated, .streamReset].contains(error.reason) {
            let wasSuspended = requests.wasSuspended()
            let isForgiven = state.withLock { state in
                if wasSuspended { state.forgiven = state.workers.count }
                state.forgiven -= 1
                return state.forgiven >= 0
            }
            if isForgiven { return true }
        }
        let request = requests.hop.request
        guard let policy = request.retryPolicy ?? context.core.configuration.retries.policy else { return false }
        var plan = retries ?? BackoffPlan(request, policy, now: clock.now())
        defer { retries = plan }
        guard let retry = plan.retry(after: error, now: clock.now(), roll: .random(in: 0..<1)) else { return false }
        do throws(LoadError) {
            try await context.backoff(retry, endsOnPathChange: policy.retriesOnNetworkChange)
        } catch {
            return false
        }
        return true
    }

    // MARK: The next part

    enum Step: Sendable {
        case part(RangePlan.Part)
        /// A part of another worker has stalled.
        case overdue(Int)
        case end
    }

    /// The time, in nanoseconds, after which a part counts as stalled if a worker waits for bytes to load.
    private static let stallLimit: Int64 = 10_000_000_000
    /// So many parts may stall one after the other without a byte of any.
    private static let maximumStalls = 5

    private func nextPart(_ index: Int, _ context: LoadContext) async -> RangePlan.Part? {
        while true {
            var step = state.withLock { $0.step(index, clock.now()) }
            if step == nil {
                let alarm = Alarm(clock, at: clock.now() &+ Self.stallLimit, context.handle)
                step = await Poller.shared.wait(until: context.handle) { slot in
                    state.withLock { state in
                        let step = state.step(index, clock.now(), stalledFor: Self.stallLimit)
                        state.waiting.removeAll { $0 === slot }
                        if step == nil { state.waiting.append(slot) }
                        return step
                    }
                } forget: { slot in
                    state.withLock { $0.waiting.removeAll { $0 === slot } }
                }
                alarm.off()
            }
            switch step {
            case .part(let part)?: return part
            case .overdue(let other)?:
                let isHopeless = state.withLock { state in
                    state.stalls += 1
                    return state.stalls > Self.maximumStalls
                }
                if isHopeless {
                    fail(
                        LoadError(
                            .idleTimeout, phase: .receiving, party: .remote,
                            detail: "every request for a part has stalled"))
                }
                abandon(other)
            case .end?: return nil
            case nil:
                // A late `abandon` is no stop.
                guard context.mayRetry() else { return nil }
            }
        }
    }
}

extension ParallelDownload.State {
    /// The next step of a worker without a part; `nil` if it must wait.
    /// - Parameter limit: the time without progress after which a part has stalled; `nil` to disregard it.
    fileprivate mutating func step(_ index: Int, _ now: Int64, stalledFor limit: Int64? = nil) -> ParallelDownload.Step?
    {
        if isOver { return .end }
        if let part = plan.next(now: now) {
            workers[index].part = part.id
            return .part(part)
        }
        guard workers.contains(where: { $0.part != nil }) else { return .end }
        guard let limit, let part = plan.overdue(since: now - limit),
            let other = workers.firstIndex(where: {
                $0.part == part.id && $0.ending == .none && !$0.context.isSuspended
            })
        else { return nil }
        workers[other].ending = .stopping
        return .overdue(other)
    }

    /// Marks all workers that load as abandoned, and returns them.
    fileprivate mutating func abandonAll() -> [Int] {
        let others = workers.indices.filter { workers[$0].part != nil && workers[$0].ending == .none }
        for other in others { workers[other].ending = .stopping }
        return others
    }
}

extension LoadError {
    /// Whether another request for the same bytes would fail as this one: the failure is not the connection's.
    fileprivate var endsAllParts: Bool {
        [.cannotWriteFile, .cannotReadFile, .cancelled, .resourceTimeout, .digestMismatch, .rangeNotSatisfiable]
            .contains(reason)
    }
}
