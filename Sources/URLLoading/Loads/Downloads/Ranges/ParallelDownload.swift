// SPDX-License-Identifier: Apache-2.0

// Carries out a `RangePlan`: workers, each with one request at a time, write their parts into one file. The first
// worker continues the response that the task has; the others send requests for ranges, each under a condition
// (If-Range), and write nothing before the response has named exactly the range that was asked for.
//
// Each worker has a load context of its own, because an idle timeout ends the wait of one worker and not the download.
// Stops and suspensions of the task are passed on to all of them (`stop`, `setSuspended`). An idle stop, which alone
// can be revoked, also ends the wait of a worker whose bytes another takes over (`abandon`).

import FoundationEssentials
import Synchronization
import URLLoadingIO

final class ParallelDownload: Sendable {
    let length: Int64
    let validator: ResumeValidator
    let file: FileWriter
    let ranges: FileRanges
    /// Held while a worker writes. Writes of one file exclude each other in the kernel, where the threads of several
    /// workers would spin: that costs a tenth of the CPU.
    let writing = Lock(())
    private let count: Int
    let clock: LoopClock
    let state: Lock<State>

    struct Worker: Sendable {
        /// That of the task while the worker reads the response that the task has; then one of its own.
        var context: LoadContext
        /// The part that it loads; `nil` while it waits for one.
        var part: Int?
        /// Whether it may ask again at once, because the task was suspended after its last request.
        var isForgiven = false
        /// Whether it waits before a repetition.
        var isResting = false
        var ending = Ending.none

        var awaitsPeer: Bool { part != nil && ending == .none && !context.isSuspended && context.isParked }
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
        /// The workers' own contexts.
        var contexts: [LoadContext] = []
        /// Workers that wait for bytes to load.
        var waiting: [PollSlot] = []
        /// The error that ends the download.
        var failure: LoadError?
        /// The last failure of a connection, and the last refusal of a request. After both, the failure is why the
        /// bytes are missing: only after it did the others need the refused request.
        var lost: LoadError?
        var refused: LoadError?
        /// No request is sent before this moment, because a server has said so (Retry-After).
        var notBefore: Int64 = 0
        /// How often a part has stalled since the last byte of any part.
        var stalls = 0
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
        for context in state.withLock({ $0.contexts }) { context.stop(reason) }
    }

    /// Passes a suspension of the task on to all workers.
    func setSuspended(_ isSuspended: Bool) {
        for context in state.withLock({ $0.contexts }) { context.handle.setSuspended(isSuspended) }
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
        let requests = Requests(hop, context, wasSuspended: wasSuspended, report: report)
        let children = (0..<most).map { _ in LoadContext(partOf: context) }
        let part = state.withLock { state in
            state.contexts = children
            state.workers = children.map { Worker(context: $0) }
            guard let part = state.plan.first(at: offset, now: clock.now()) else { return nil as RangePlan.Part? }
            (state.workers[0].context, state.workers[0].part) = (context, part.id)
            return part
        }
        // The others may need its connection.
        if part == nil { first.release() }
        for child in children {
            guard context.core.registry.enter(child.handle, inPlaceOf: context.handle) else {
                child.stop(.invalidated)
                continue
            }
            // The task may be suspended or resumed between the two calls.
            var isSuspended: Bool
            repeat {
                isSuspended = context.isSuspended
                child.handle.setSuspended(isSuspended)
            } while isSuspended != context.isSuspended
        }
        if let reason = context.stopReason, reason != .idle { stop(reason) }
        await withTaskGroup(of: Void.self) { group in
            for (index, child) in children.enumerated() {
                let given = index == 0 ? part.map { Given(exchange: first, part: $0, context: context) } : nil
                group.addTask { await self.work(index, child, given, requests) }
            }
        }
        for child in children { child.endPart() }
        try await end(context)
    }

    /// What the workers need to send requests, and to tell of their bytes.
    struct Requests: Sendable {
        let hop: Hop
        /// The policy by which a worker repeats its request: the request itself has none, because one that is repeated
        /// begins at another byte.
        let policy: RetryPolicy?
        let wasSuspended: @Sendable () -> Bool
        let report: @Sendable (Int) async -> LoadError?

        init(
            _ hop: Hop, _ context: LoadContext, wasSuspended: @escaping @Sendable () -> Bool,
            report: @escaping @Sendable (Int) async -> LoadError?
        ) {
            policy = hop.request.retryPolicy ?? context.core.configuration.retries.policy
            var hop = hop
            hop.purpose = .part
            if policy != nil { hop.request.retryPolicy = .never }
            (self.hop, self.wasSuspended, self.report) = (hop, wasSuspended, report)
        }
    }

    /// The response that the task has, and the context that ends its waits.
    private struct Given: Sendable {
        let exchange: any Exchange
        let part: RangePlan.Part
        let context: LoadContext
    }

    /// Writes the journal before any byte: a file of the size of its content would count as complete.
    private func begin() async throws(LoadError) {
        try await access { [self] () throws(IOFailure) in
            try ranges.wrote(state.withLock { $0.plan.written.ranges }, now: clock.coarseNow())
        }
    }

    private func end(_ context: LoadContext) async throws(LoadError) {
        if let reason = context.stopReason { throw LoadError(reason, phase: .receiving) }
        let (isComplete, failure, cause) = state.withLock { ($0.plan.isComplete, $0.failure, $0.lost ?? $0.refused) }
        if let failure { throw failure }
        guard isComplete else {
            throw cause
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
        case refused(LoadError, HTTPHead?)
        /// - Parameter hasMoved: whether it has brought bytes.
        case failed(LoadError, hasMoved: Bool)
    }

    private func work(_ index: Int, _ own: LoadContext, _ first: Given?, _ requests: Requests) async {
        var retries: BackoffPlan?
        var given = first
        working: while true {
            var next = given?.part
            if next == nil { next = await nextPart(index, own, requests) }
            guard let part = next else { break }
            let context = given?.context ?? own
            let outcome = await load(part, given?.exchange, context, requests)
            let isAbandoned = await leave(part, index, context)
            if given != nil {
                given = nil
                state.withLock { $0.workers[index].context = own }
                // The task's context has no more waits. A stop of its one response is no end of the download.
                context.revokeIdleStop()
            }
            switch outcome {
            case .done: retries = nil
            case .refused(let error, let head):
                note(refusal: error, head)
                guard let head, await mayRepeat(index, &retries, own, requests, { $0.retry(after: head, own) }) else {
                    break working
                }
            case .failed(let error, let hasMoved):
                // Another worker waits for the bytes, or the download is over.
                if isAbandoned, error.reason == .idleTimeout { continue }
                state.withLock { $0.lost = error }
                if error.endsAllParts { fail(error) }
                if hasMoved { retries = nil }
                if isForgiven(index, error, own, requests) { continue }
                let now = clock.now()
                guard
                    await mayRepeat(
                        index, &retries, own, requests,
                        { $0.retry(after: error, now: now, roll: .random(in: 0..<1)) })
                else { break working }
            }
        }
        while (try? await report(0, requests)) == true {}
        for slot in state.withLock({ $0.wake() }) { slot.wake() }
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

    private func note(refusal error: LoadError, _ head: HTTPHead?) {
        let wait = head.flatMap { Self.wait(asked: $0) }
        state.withLock { state in
            state.refused = error
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

    /// Whether a worker may send another request at once, because the task was suspended, and its server has closed the
    /// connections meanwhile.
    private func isForgiven(
        _ index: Int, _ error: LoadError, _ context: LoadContext, _ requests: Requests
    ) -> Bool {
        guard [.connectionLost, .truncated, .streamReset].contains(error.reason), context.mayRetry() else {
            return false
        }
        let wasSuspended = requests.wasSuspended()
        return state.withLock { state in
            if wasSuspended { for other in state.workers.indices { state.workers[other].isForgiven = true } }
            defer { state.workers[index].isForgiven = false }
            return state.workers[index].isForgiven
        }
    }

    /// Whether a worker may send another request, by the retry policy, whose count begins anew with each byte of
    /// progress, and by the session's budget. Waits as long as the policy says.
    /// - Parameter decide: asks the policy.
    private func mayRepeat(
        _ index: Int, _ retries: inout BackoffPlan?, _ context: LoadContext, _ requests: Requests,
        _ decide: (inout BackoffPlan) -> Retry?
    ) async -> Bool {
        guard let policy = requests.policy, context.mayRetry() else { return false }
        var plan = retries ?? BackoffPlan(requests.hop.request, policy, now: clock.now())
        let decided = decide(&plan)
        retries = plan
        var entry: RetryLedger.Entry?
        guard let retry = decided, context.affords(retry, &entry) else { return false }
        let mayRest = state.withLock { state in
            state.workers[index].isResting = !state.isOver
            return !state.isOver
        }
        defer { state.withLock { $0.workers[index].isResting = false } }
        do throws(LoadError) {
            guard mayRest else { throw LoadError(.cancelled, phase: .waiting) }
            try await context.backoff(retry, endsOnPathChange: policy.retriesOnNetworkChange)
        } catch {
            if let entry { context.core.retries?.giveBack(entry, now: clock.now()) }
            return false
        }
        return true
    }

    // MARK: The next part

    enum Step: Sendable {
        case part(RangePlan.Part)
        /// A part of another worker has stalled.
        case overdue(Int)
        /// There are no bytes to load, and no part has stalled before this moment.
        case wait(until: Int64)
        case end
    }

    /// So many parts may stall one after the other without a byte of any.
    private static let maximumStalls = 5

    private func nextPart(_ index: Int, _ context: LoadContext, _ requests: Requests) async -> RangePlan.Part? {
        while true {
            var step: Step? = state.withLock { $0.step(index, clock.now()) }
            if case .wait(let moment)? = step {
                if (try? await report(0, requests)) != false { continue }
                let alarm = Alarm(clock, at: moment, context.handle)
                step = await Poller.shared.wait(until: context.handle) { slot in
                    state.withLock { state in
                        let now = clock.now()
                        let step = state.step(index, now)
                        state.waiting.removeAll { $0 === slot }
                        guard case .wait = step, now < moment else { return step }
                        state.waiting.append(slot)
                        return nil
                    }
                } forget: { slot in
                    state.withLock { $0.waiting.removeAll { $0 === slot } }
                }
                alarm.off()
            }
            switch step {
            case .part(let part)?: return part
            case .wait?: continue
            case .overdue(let other)?:
                let isHopeless = state.withLock { state in
                    state.stalls += 1
                    return state.stalls > Self.maximumStalls
                }
                if isHopeless {
                    fail(
                        LoadError(
                            .idleTimeout, phase: .receiving, party: .remote,
                            detail: "every request for a part has stalled: no data for "
                                + "\(Duration.nanoseconds(State.stallLimit))"))
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
    /// The time, in nanoseconds, after which a part counts as stalled if a worker waits for bytes to load.
    fileprivate static var stallLimit: Int64 { 10_000_000_000 }

    /// The next step of a worker without a part.
    fileprivate mutating func step(_ index: Int, _ now: Int64) -> ParallelDownload.Step {
        if isOver { return .end }
        if let part = plan.next(now: now) {
            workers[index].part = part.id
            return .part(part)
        }
        guard workers.contains(where: { $0.part != nil }) else { return .end }
        let waiting = workers.filter(\.awaitsPeer).compactMap(\.part)
        guard let part = plan.slowest(now: now, where: waiting.contains),
            let other = workers.firstIndex(where: { $0.part == part.id })
        else { return .wait(until: now &+ Self.stallLimit) }
        guard now - part.moved >= Self.stallLimit else { return .wait(until: part.moved &+ Self.stallLimit) }
        workers[other].ending = .stopping
        return .overdue(other)
    }

    /// Marks all workers that load, or wait before a repetition, as abandoned, and returns them.
    fileprivate mutating func abandonAll() -> [Int] {
        let others = workers.indices.filter {
            (workers[$0].part != nil || workers[$0].isResting) && workers[$0].ending == .none
        }
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
