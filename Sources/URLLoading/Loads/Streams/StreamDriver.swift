// SPDX-License-Identifier: Apache-2.0

// The stream behind a handle: its connection, the calls that use it, and its end. It moves bytes and knows no
// protocol; reading, writing and securing are extensions in files of their own.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class StreamDriver: ConnectionClient, StopListener, @unchecked Sendable {
    // Unchecked: the variables belong to the call that has entered their side.
    let handle: LoadHandle
    let core: Core
    /// The peer; nil if the caller gave an invalid host or port.
    let origin: Origin?
    let url: URL?
    let state: Lock<StreamState>
    private let wantsSecurity: Bool

    // The buffer and the timer of each side are accessed only by the call that has entered that side.
    var buffer: StreamBuffer
    /// The number of bytes received since the reader last had to wait.
    var receivedInTurn = 0
    /// The due time of the last timer set for the input; `.max` without one.
    private var inputTimer = Int64.max
    private var outputTimer = Int64.max

    let sentCount = Atomic<Int64>(0)
    let receivedCount = Atomic<Int64>(0)
    /// The decisions of a classic task; nil for a stream that uses its session's decisions only.
    private let own = Lock<Decisions?>(nil)
    let decisionCaller: (any DecisionCaller)? = nil
    private let started = LoadMetrics.Moment.Origin(nanoseconds: Poller.now(), date: Date())
    /// The transaction record of the connection.
    private let record: TransactionRecord?

    /// The number of sides, 0 to 2, that wait for the peer.
    private let waits = Lock(0)

    /// - Parameters:
    ///   - connection: a connection in use; `nil` to make one when the stream begins.
    ///   - predecessor: the load whose connection it is.
    init(
        _ core: Core, _ origin: Origin?, isSecure: Bool, adopting connection: SurrenderedConnection? = nil,
        inPlaceOf predecessor: LoadContext? = nil, holdsSession: Bool = false
    ) {
        self.core = core
        self.origin = origin
        url = origin.flatMap { URL(string: "tcp://\($0.host):\($0.port)") }
        wantsSecurity = isSecure
        record = url.map { TransactionRecord(Request(url: $0), isStream: true) }
        state = Lock(StreamState(adopting: connection?.transport, isSecure: isSecure))
        buffer = StreamBuffer(connection?.received)
        let configuration = core.configuration
        handle = LoadHandle(
            idle: configuration.timeouts.idle, resource: configuration.timeouts.resource,
            connect: configuration.timeouts.connect, clock: configuration.clock, holdsSession: holdsSession,
            leaked: core.leaked)
        handle.setListener(self)
        if let connection { handle.attach(connection.transport.slot) }
        if let error = refusal(predecessor) {
            state.withLock { $0.fail(error) }
            settle()
        }
    }

    private func refusal(_ predecessor: LoadContext?) -> LoadError? {
        guard origin != nil else {
            return LoadError(.badURL, phase: .preparing, party: .local, detail: "invalid host or port")
        }
        guard !core.requestDefaults.isBackground else {
            return .notInBackground("a background session has downloads and uploads of files only", url)
        }
        guard core.registry.enter(handle, inPlaceOf: predecessor?.handle) else {
            return LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: url)
        }
        return nil
    }

    // MARK: Controls

    func resume() {
        let beginning = state.withLock { state in
            let beginning = state.resume(Task.currentPriority)
            // Under the lock, so that of calls by several threads the last one prevails.
            handle.setSuspended(false)
            return beginning
        }
        settle()
        guard beginning != .none else { return }
        handle.holdsSession.store(true, ordering: .relaxed)
        handle.startClock()
        core.registry.watch(handle)
        guard beginning == .open, let origin else { return }
        Task.here(onLoop: core.configuration.loadsOnLoop) { await self.open(origin) }
    }

    func suspend() {
        state.withLock { state in
            state.suspend()
            handle.setSuspended(true)
        }
    }

    func stop(_ reason: StopReason) { handle.stop(reason) }

    // MARK: Decisions

    var handshakeDecision: HandshakeDecision? {
        HandshakeDecision(session: core.decisions, load: own.withLock { $0 })
    }

    func decide(by decisions: Decisions) { own.withLock { $0 = decisions } }

    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision {
        let (own, shared) = (own.withLock { $0?.challenge }, core.decisions?.challenge)
        guard let decision = challenge.protectionSpace.method.isForSession ? shared ?? own : own ?? shared
        else { return .performDefaultHandling }
        return try await ask(decision, challenge)
    }

    // MARK: Opening

    /// The metrics of a stream that has ended.
    var metrics: LoadMetrics {
        guard let record else { return LoadMetrics(started, end: Poller.now(), redirectCount: 0, []) }
        record.end(sent: sentCount.load(ordering: .relaxed), received: receivedCount.load(ordering: .relaxed))
        return LoadMetrics(
            started, end: record[.end], redirectCount: 0, [LoadMetrics.Transaction(record: record, origin: started)])
    }

    func stopped() { settle() }
    /// A stream ends when its holder closes it.
    func requireEnd() {}

    private func open(_ origin: Origin) async {
        let result: Result<any Transport, LoadError>
        do throws(LoadError) {
            let authentication = TunnelAuthentication(origin, self, core)
            let transport = try await core.proxies.first(to: origin, url, for: handle) {
                (proxyChain) throws(LoadError) in
                try await authentication.open(proxyChain) { (proxyChain, refused) throws(LoadError) in
                    try await core.pool.connector.stream(
                        to: origin, through: proxyChain, isSecure: wantsSecurity,
                        for: ConnectionRequest(client: self, record: record, refused: refused))
                }
            }
            record?.connected(transport, throughProxy: !core.proxies.isDirect)
            handle.attach(transport.slot)
            result = .success(transport)
        } catch {
            let error = failure(or: error)
            record?.error = error
            result = .failure(error)
        }
        state.withLock { $0.opened(result, isSecure: wantsSecurity) }
        settle()
    }

    // MARK: Entering and leaving a side

    func enter(_ side: StreamState.Side) throws(LoadError) {
        guard state.withLock({ $0.enter(side) }) else { throw failure(.streamBusy, side) }
    }

    func leave(_ side: StreamState.Side) {
        let mayEnd = state.withLock { state in
            state.leave(side)
            return state.outcome != nil
        }
        if mayEnd || stopReason != nil { settle() }
    }

    /// Carries out the consequences of a change of the state: wakes the calls that wait for one, closes the transport.
    func settle() {
        let stop = stopReason
        let settlement = state.withLock { state in
            state.settle(stop) { handle.worded(LoadError($0, phase: $1).at(url)) }
        }
        for slot in settlement.waking { slot.wake() }
        guard settlement.ends else { return }
        if let transport = settlement.transport {
            handle.detach(transport.slot)
            transport.close()
        }
        core.registry.leave(handle)
        handle.forgetListener()
        for slot in state.withLock({ $0.over() }) { slot.wake() }
    }

    /// Waits until the transport is closed and the stream has left its session. Returns the stream's error, if it has
    /// one.
    func ended() async -> LoadError? {
        await Poller.shared.wait(until: .never) { slot in
            state.withLock { state -> StreamState.Outcome? in
                state.forget(slot)
                if state.isOver { return state.outcome }
                state.wait(slot)
                return nil
            }
        }?.error
    }

    /// Returns the error for a call that cannot continue: the stream's error or its stop; nil if the stream has not
    /// ended.
    func ending(_ side: StreamState.Side) -> LoadError? {
        let (state, stop) = (state.withLock { $0 }, stopReason)
        // Each call reports a stop with its own phase.
        if let stop, state.isStopped { return handle.worded(LoadError(stop, phase: state.phase(side)).at(url)) }
        if let outcome = state.outcome { return outcome.error }
        // While the stream connects, the task that opens it reports the stop shortly.
        guard let stop, !state.isOpening else { return nil }
        return handle.worded(LoadError(stop, phase: state.phase(side)).at(url))
    }

    func failure(_ reason: LoadError.Reason, _ side: StreamState.Side, _ party: LoadError.Party = .local) -> LoadError {
        LoadError(reason, phase: phase(side), party: party, url: url)
    }

    /// Returns the error of the stop, if the stream was stopped, or else `error`.
    func failure(or error: LoadError) -> LoadError { handle.worded(LoadError(stopReason, or: error).at(url)) }

    private func phase(_ side: StreamState.Side) -> LoadError.Phase {
        state.withLock { $0.phase(side) }
    }

    // MARK: Waiting for the peer

    /// Starts the idle timeout, which runs while at least one side waits, and restarts whenever bytes move in either
    /// direction: a reader may wait for an answer while an upload of an hour continues.
    func beginWaiting() {
        guard handle.idleLimit != .max else { return }
        waits.withLock { waits in
            if waits == 0 { handle.idleDeadline.store(clock.coarseNow() &+ handle.idleLimit, ordering: .relaxed) }
            waits += 1
        }
    }

    func endWaiting() {
        guard handle.idleLimit != .max else { return }
        waits.withLock { waits in
            waits -= 1
            if waits == 0 { handle.idleDeadline.store(.max, ordering: .relaxed) }
        }
    }

    func moved() {
        guard handle.idleLimit != .max, handle.idleDeadline.load(ordering: .relaxed) != .max else { return }
        waits.withLock { waits in
            if waits > 0 { handle.idleDeadline.store(clock.coarseNow() &+ handle.idleLimit, ordering: .relaxed) }
        }
    }

    /// Sets the timer of the call's side. Each side has one timer; one that fires too early only makes its call check
    /// again.
    func setTimer(_ call: StreamCall, _ slot: PollSlot) {
        guard call.deadline != .max else { return }
        let set = call.side == .input ? inputTimer : outputTimer
        guard call.deadline < set || set <= clock.now() else { return }
        if call.side == .input { inputTimer = call.deadline } else { outputTimer = call.deadline }
        clock.schedule(slot, at: call.deadline)
    }
}
