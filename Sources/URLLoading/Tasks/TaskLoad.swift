// The load behind a handle. `resume` makes the one task that drives it: to the head of the answer and
// a little further, then whoever reads the body pulls it in his own task. The classic shape has the
// whole body pushed into its sink instead.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Where the classic shape hears of a load. One load calls it from one task at a time.
package protocol LoadSink: AnyObject, Sendable {
    /// Whoever answers its challenges may have something to say about servers.
    var judgesServers: Bool { get }
    /// In order; must not wait.
    func emit(_ event: LoadEvent)
    /// The load reads on when this returns.
    func receive(_ chunk: Chunk) async
    /// The load begins to wait for the body to go on: what has come so far should be heard now.
    func pause()
    /// The load was stopped: a wait in `receive` must end.
    func stopped()
    /// Somebody decides what is kept of the response.
    var decidesWhatIsKept: Bool { get }
    /// Calls a decision, which may want to know whose load it is about.
    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer
}

extension LoadSink {
    package var decidesWhatIsKept: Bool { true }
    package func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await decision()
    }
}

final class TaskLoad: Load, @unchecked Sendable {
    let state = Lock(LoadTaskState())
    private let sink: (any LoadSink)?
    override var asker: (any LoadSink)? { sink }
    /// A session that finishes its tasks waits for this one although nobody has resumed it.
    private let holdsSession: Bool
    /// Where its body goes, if it is a download. Set before it begins, or by its driver.
    private let work: Lock<DownloadWork?>
    var download: DownloadWork? { work.withLock { $0 } }
    /// What is sent, if it can be resumed.
    private let upload: UploadWork?
    private struct Urgency: Sendable {
        /// What is told of another priority.
        var stream: (connection: HTTP2Connection, stream: HTTP2Stream)?
        /// The one it was given while it ran.
        var priority: TaskPriority?
    }
    private let urgency = Lock(Urgency())
    /// What the response is the answer to. The driver's.
    private var lastHop: Hop?
    /// It was suspended, and no connection was lost since: what had come by then is read first.
    private let hasRested = Atomic<Bool>(false)

    init(
        _ core: Core, _ request: Request, _ decisions: Decisions?, sink: (any LoadSink)? = nil,
        download: DownloadWork? = nil, upload: UploadWork? = nil, holdsSession: Bool = false
    ) {
        self.sink = sink
        self.upload = upload
        self.holdsSession = holdsSession
        work = Lock(download)
        super.init(core, request, decisions, isHandle: true)
        state.withLock { $0.counts.expectedToSend = request.body.map(\.length) ?? 0 }
        guard !core.registry.enter(self), state.withLock({ $0.seize() }) != nil else { return }
        complete(.failed(.sessionInvalidated(request.url)))
    }

    /// It cannot be loaded, whatever happens: known before it begins.
    func refuse(_ error: LoadError) {
        if state.withLock({ $0.seize() }) != nil { complete(.failed(error)) }
    }

    /// A decision about what is stored is for data and uploads (checklist 98).
    override var cacheDecision: Decision<CachedResponse, CacheDecision>? {
        download == nil && sink?.decidesWhatIsKept ?? true ? super.cacheDecision : nil
    }

    /// Nobody but the library reads it.
    override var readsToEnd: Bool { download != nil || sink != nil }

    override var judgesServers: Bool { sink?.judgesServers ?? true }

    /// Who waits for it does not wait until somebody resumes it.
    private let leading = Lock<SharedFetch?>(nil)
    override func lead(_ fetch: SharedFetch) {
        leading.withLock { $0 = fetch }
        if isSuspended { leading.withLock { $0.take() }?.settle(.failed) }
    }

    override var mayTakeUpgrade: Bool { download == nil && (decisions?.response ?? core.decisions?.response) != nil }

    override var isGoingOn: Bool { holdsSession || state.withLock { $0.isBegun } }

    // MARK: The controls

    /// - Parameter wanted: `nil` for the priority of whoever calls.
    func resume(_ wanted: TaskPriority? = nil) {
        let begins = state.withLock { state in
            let begins = state.resume(wanted ?? Task.currentPriority)
            // Under the lock: the last call of several threads is what holds.
            setSuspended(false)
            return begins
        }
        guard begins else { return }
        startClock()
        core.registry.watch(self)
        // Whoever prefers the loop has its loads driven there.
        let prefersLoop = withUnsafeCurrentTask { $0?.unownedTaskExecutor == Poller.shared.asUnownedTaskExecutor() }
        // Immediate: what needs no waiting, such as sending on a connection that rests, is done when this
        // returns. Closures of the caller's run in tasks of their own.
        Task.immediate(priority: wanted, executorPreference: prefersLoop ? Poller.shared : nil) { await self.drive() }
    }

    func prioritize(_ priority: TaskPriority) {
        let isBegun = state.withLock { state in
            if state.isBegun { state.priority = priority }
            return state.isBegun
        }
        guard isBegun else { return }
        let told = urgency.withLock { urgency in
            urgency.priority = priority
            return urgency.stream
        }
        told?.connection.prioritize(told?.stream, urgency: priority.urgency)
    }

    override func hasStream(_ stream: HTTP2Stream?, on connection: HTTP2Connection) {
        let priority = urgency.withLock { urgency in
            urgency.stream = stream.map { (connection, $0) }
            return urgency.priority
        }
        // It was given another before it had a stream.
        if let priority { connection.prioritize(stream, urgency: priority.urgency) }
    }

    func suspend() {
        state.withLock { state in
            state.suspend()
            setSuspended(true)
        }
        leading.withLock { $0.take() }?.settle(.failed)
        hasRested.store(true, ordering: .relaxed)
    }

    override func didStop() {
        guard let why = stopReason else { return }
        // Silence before the response may be forgiven; nobody waits for the sink yet.
        if why != .idle || state.withLock({ $0.response != nil }) { sink?.stopped() }
        guard let seized = state.withLock({ $0.seize() }) else { return }
        seized.exchange?.release()
        let phase: LoadError.Phase = seized.exchange == nil ? .preparing : .receiving
        complete(.failed(LoadError(why, phase: phase).at(seized.exchange?.response.url ?? original.url)))
    }

    /// Nobody holds the handle any more. What was sent was sent; an answer nobody can read is not read.
    func drop() {
        guard sink == nil else { return }
        // A file without a name goes with its last reference: nobody could ever have it.
        let isPointless = download.map { $0.options.destination == nil } ?? false
        if state.withLock({ $0.drop() }) || isPointless { stop(.cancelled) }
    }

    // MARK: The driver

    // Each handle has a task of its own, whose stack grows by about 1 KB at a time; a frame beyond that
    // costs an allocation of its size. Hence what is not inlined here.

    private func drive() async {
        do throws(LoadError) {
            let exchange = try await begin()
            // Whoever has the response can have a token.
            if let download { try await open(exchange, download) }
            state.withLock { $0.respond(exchange.response) }.wake()
            if let download { return try await save(exchange, download) }
            if state.withLock({ $0.hasBecomeStream }) { return handOver(exchange) }
            if let sink { try await push(exchange, into: sink) } else { try await read(exchange) }
        } catch {
            complete(.failed(error))
        }
    }

    private func begin() async throws(LoadError) -> any Exchange {
        if let upload { return try await send(upload) }
        guard let download else { return try await run() }
        return try await resume(download)
    }

    @inline(never)
    private func send(_ upload: UploadWork) async throws(LoadError) -> any Exchange {
        let first: Request
        do throws(LoadError) { first = try await upload.begin(self) } catch { throw error.at(original.url) }
        return try await run(first)
    }

    override func willSend(_ request: inout PreparedRequest) throws(LoadError) { try upload?.complete(&request) }

    @inline(never)
    private func resume(_ download: DownloadWork) async throws(LoadError) -> any Exchange {
        var request = original
        do throws(LoadError) { try await download.prepare(&request) } catch { throw error.at(original.url) }
        return try await run(request)
    }

    override func another(after exchange: any Exchange, _ hop: Hop) throws(LoadError) -> Request? {
        if let upload { return try upload.next(after: exchange.head, to: hop.request) }
        lastHop = hop
        guard let download else { return nil }
        return download.another(exchange.head, original)
    }

    override func becomeDownload(_ options: DownloadOptions) throws(LoadError) {
        guard sink == nil, download == nil, let waiting = state.withLock({ $0.becomeDownload() }) else {
            return try super.becomeDownload(options)
        }
        work.withLock { $0 = DownloadWork(options, nil, core.configuration) }
        waiting.wake()
    }

    override func becomeStream(_ exchange: any Exchange) throws(LoadError) {
        guard download == nil, exchange.network is HTTPExchange, !exchange.isSending, state.withLock({ $0.becomeStream() }) else {
            guard exchange.network is HTTP2Exchange else { return try super.becomeStream(exchange) }
            throw LoadError(
                .badDecision, phase: .deciding, party: .local,
                detail: "other loads share an HTTP/2 connection: HTTP/1.1 alone can become a stream")
        }
    }

    /// The connection is a stream's from now on.
    private func handOver(_ exchange: any Exchange) {
        guard let http = exchange.network as? HTTPExchange, let (transport, received, origin) = http.surrender() else { return }
        let task = StreamTask(adopting: transport, buffered: received, isSecure: origin.isSecure, origin: origin, inPlaceOf: self)
        emission?.emit(.becameStream(task), self)
        complete(.finished)
    }

    /// The file that the body goes to.
    @inline(never)
    private func open(_ exchange: any Exchange, _ download: DownloadWork) async throws(LoadError) {
        do throws(LoadError) {
            if state.withLock({ $0.hasBecomeDownload }) { handOver() }
            guard let (offset, expected) = try await download.begin(exchange.response, original) else { return }
            emission?.emit(.resumed(offset: offset, expected: expected), self)
        } catch {
            throw exchange.failed(error).with(download.resumeToken(isEarly: false))
        }
    }

    /// The whole body into the file.
    @inline(never)
    private func save(_ first: any Exchange, _ download: DownloadWork) async throws(LoadError) {
        var exchange = first
        while true {
            do throws(LoadError) {
                try await write(exchange, download)
                exchange.release()
                try await download.finish()
                return complete(.finished, exchange.trailers)
            } catch {
                let error = exchange.failed(error)
                guard let rest = await rest(after: error, download) else {
                    throw error.with(download.resumeToken(isEarly: false))
                }
                exchange = rest
            }
        }
    }

    private func write(_ exchange: any Exchange, _ download: DownloadWork) async throws(LoadError) {
        while true {
            let saved = try await download.receive(exchange, self)
            if saved.count > 0 { received(saved.count) }
            if let error = saved.error { throw error }
            if saved.isEnd { return }
            if saved.count == 0 { try await exchange.fill(atMost: .max) }
        }
    }

    /// A server need not wait for who has suspended his download: resumed, it goes on over another connection,
    /// by the rules of a token (checklist 51). `nil` if it cannot.
    @inline(never)
    private func rest(after error: LoadError, _ download: DownloadWork) async -> (any Exchange)? {
        guard hasRested.exchange(false, ordering: .relaxed), error.reason == .connectionLost || error.reason == .truncated,
            var hop = lastHop, let offset = download.goOn(with: &hop.request)
        else { return nil }
        guard let exchange = try? await ask(again: hop) else { return nil }
        guard download.isRest(exchange.response) else {
            exchange.release()
            return nil
        }
        emission?.emit(.resumed(offset: offset, expected: download.expected), self)
        return exchange
    }

    /// Whoever held the data task hears nothing more.
    private func handOver() {
        let task = LoadTask<DownloadedFile>(self, nil)
        emission?.emit(.becameDownload(task), self)
    }

    /// Returns when the load is over.
    func finished() async throws(LoadError) {
        let outcome = await wait { state, slot -> LoadTaskState.Outcome? in
            if let outcome = state.outcome { return outcome }
            state.waitForEnd(slot)
            return nil
        }
        guard let outcome else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        if let error = outcome.error { throw error }
    }

    /// Reads as far as somebody wants, and leaves the rest to a reader.
    @inline(never)
    private func read(_ exchange: any Exchange) async throws(LoadError) {
        let readAhead = core.configuration.readAhead
        do throws(LoadError) {
            while true {
                var most = 0, isWanted = false
                if case .read(let count) = state.withLock({ $0.demand(upTo: readAhead) }) { (most, isWanted) = (count, true) }
                switch try exchange.buffered(atMost: most) {
                case .chunk(let chunk)?:
                    try keep(chunk)
                case .end?:
                    exchange.release()
                    return complete(.finished, exchange.trailers)
                case nil where most > 0: try await exchange.fill(atMost: most)
                case nil where isWanted && exchange.isSending: try await sendOn(exchange)
                case nil: if try leave(exchange) { return }
                }
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    /// Nobody has asked for more of the answer, but the request goes on: until it is out, or somebody asks.
    @inline(never)
    private func sendOn(_ exchange: any Exchange) async throws(LoadError) {
        guard state.withLock({ $0.beginSending() }) else { return }
        try await exchange.sendOn()
        state.withLock { $0.endSending() }
    }

    @inline(never)
    private func keep(_ chunk: Chunk) throws(LoadError) {
        received(chunk.count)
        let readAhead = core.configuration.readAhead, limit = core.configuration.limits.collectedBodySize
        try state.withLock { state throws(LoadError) in
            try state.keep(chunk, readAhead: readAhead, limit: limit)
        }.wake()
    }

    /// Returns false if there is reason to stay.
    @inline(never)
    private func leave(_ exchange: any Exchange) throws(LoadError) -> Bool {
        exchange.setResting(true)
        let (leaving, readers) = state.withLock { ($0.leave(exchange), $0.takeReaders()) }
        readers.wake()
        switch leaving {
        case .stay:
            exchange.setResting(false)
            return false
        case .pointless: throw LoadError(.cancelled, phase: .receiving, party: .local)
        case .left:
            // A stop that came before we left found an owner, and left the end to us.
            if stopReason != nil { didStop() }
            return true
        }
    }

    @inline(never)
    private func push(_ exchange: any Exchange, into sink: any LoadSink) async throws(LoadError) {
        do throws(LoadError) {
            while true {
                switch try exchange.buffered(atMost: .max) {
                case .chunk(let chunk)?:
                    received(chunk.count)
                    await sink.receive(chunk)
                case .end?:
                    exchange.release()
                    return complete(.finished, exchange.trailers)
                case nil:
                    sink.pause()
                    try await exchange.fill(atMost: .max)
                }
            }
        } catch {
            throw exchange.failed(error)
        }
    }

    @inline(never)
    private func complete(_ outcome: LoadTaskState.Outcome, _ trailers: Headers = Headers()) {
        // Whoever hears of the end may go on with the file at once.
        download?.leave()
        end(outcome.error)
        state.withLock { $0.end(outcome, trailers) }.wake()
    }

    // MARK: What is heard of it

    override func hear(_ event: LoadEvent) {
        let event = upload.map { noted(event, $0) } ?? event
        let listeners = state.withLock { state in
            state.counts.note(event)
            if case .metrics(let metrics) = event { state.metrics = metrics }
            defer { if event.isHandOver { state.listeners = [] } }
            return state.listeners
        }
        for listener in listeners { listener.append(event) }
        sink?.emit(event)
    }

    private func noted(_ event: LoadEvent, _ upload: UploadWork) -> LoadEvent {
        switch event {
        case .bodySent(let bytes): return .bodySent(upload.counted(bytes))
        case .informational(let head): upload.note(head)
        case .redirected(let redirect): upload.note(redirect)
        default: break
        }
        return event
    }

    /// A sequence of the events from now on; of the last two, if those have been.
    func listen() -> EventQueue {
        let queue = EventQueue()
        let (outcome, metrics) = state.withLock { state in
            if state.outcome == nil { state.listeners.append(queue) }
            return (state.outcome, state.metrics)
        }
        guard let outcome else { return queue }
        if let metrics { queue.append(.metrics(metrics)) }
        queue.append(.completed(outcome.error))
        return queue
    }

    // MARK: The reader

    /// The next chunk, for the one who claimed the body.
    func next() async throws(LoadError) -> Chunk? {
        switch state.withLock({ $0.take(nil) }) {
        case .chunk(let chunk): return chunk
        case .end: return nil
        case .failed(let error): throw error
        case .pull(let exchange): return try await pull(exchange)
        case .wait: return try await waitForChunk()
        }
    }

    private func pull(_ exchange: any Exchange) async throws(LoadError) -> Chunk? {
        exchange.setResting(false)
        do throws(LoadError) {
            guard let chunk = try await exchange.next() else {
                complete(.finished, exchange.trailers)
                return nil
            }
            received(chunk.count)
            let reason = stopReason
            guard state.withLock({ $0.putBack(exchange, isStopped: reason != nil) }) else {
                throw exchange.failed(LoadError(reason ?? .cancelled, phase: .receiving))
            }
            // A stop between the look and the word found an owner, and left the end to us.
            if stopReason != nil { didStop() }
            return chunk
        } catch {
            complete(.failed(error))
            throw error
        }
    }

    private func waitForChunk() async throws(LoadError) -> Chunk? {
        let taken = await wait(stoppingOnCancel: true) { state, slot -> LoadTaskState.Taken? in
            let taken = state.take(slot)
            if case .wait = taken { return nil }
            return taken
        }
        switch taken {
        case .chunk(let chunk)?: return chunk
        case .end?: return nil
        case .failed(let error)?: throw error
        case .pull(let exchange)?: return try await pull(exchange)
        case .wait?, nil: throw LoadError(.cancelled, phase: .receiving, party: .local).at(original.url)
        }
    }

    /// The whole body. The driver reads it; whoever waits may give up without ending the load.
    func whole() async throws(LoadError) -> Data {
        if state.withLock({ $0.wantWhole() }) { wake() }
        while true {
            let seen = await wait { state, slot -> LoadTaskState.Whole? in
                let seen = state.takeWhole(slot)
                if case .wait = seen { return nil }
                return seen
            }
            switch seen {
            case .data(let data)?: return data
            case .failed(let error)?: throw error
            case .drive(let exchange)?: Task { await driveOn(exchange) }
            case .wait?, nil: throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url)
            }
        }
    }

    private func driveOn(_ exchange: any Exchange) async {
        exchange.setResting(false)
        do throws(LoadError) { try await read(exchange) } catch { complete(.failed(error)) }
    }

    /// The response, as soon as it is known.
    func response() async throws(LoadError) -> Response {
        let result = await wait { state, slot -> Result<Response, LoadError>? in
            if let response = state.response { return .success(response) }
            if let error = state.outcome?.error { return .failure(error) }
            state.waitForResponse(slot)
            return nil
        }
        guard let result else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        return try result.get()
    }

    // MARK: Waiting

    /// Looks until there is something to see; `nil` if the calling task was cancelled before.
    func wait<R: Sendable>(
        stoppingOnCancel: Bool = false,
        _ look: @Sendable (inout LoadTaskState, PollSlot) -> R?
    ) async -> R? {
        let slot = Poller.shared.borrowSlot()
        defer { Poller.shared.returnSlot(slot) }
        return await withTaskCancellationHandler {
            while true {
                let seen = state.withLock { state in
                    state.forget(slot)
                    let seen = look(&state, slot)
                    if seen != nil { state.forget(slot) }
                    return seen
                }
                if let seen { return seen }
                if Task.isCancelled {
                    state.withLock { $0.forget(slot) }
                    return nil
                }
                await Poller.shared.park(slot, until: .never)
            }
        } onCancel: {
            if stoppingOnCancel { stop(.cancelled) }
            slot.wake()
        }
    }
}

extension LoadEvent {
    /// Who listened to a data task hears nothing more.
    fileprivate var isHandOver: Bool {
        switch self {
        case .becameDownload, .becameStream: true
        default: false
        }
    }
}

extension LoadTaskState.Counts {
    mutating func note(_ event: LoadEvent) {
        switch event {
        case .bodySent(let bytes): (sent, expectedToSend) = (bytes.total, bytes.expected)
        case .responded(let response): expectedToReceive = response.expectedLength
        case .received(let bytes): received = bytes.total
        case .resumed(let offset, let expected): (received, expectedToReceive) = (offset, expected)
        case .canonicalized, .informational, .challenged, .redirected, .retrying, .waitingForConnectivity, .stored, .becameDownload, .becameStream,
            .metrics, .completed: break
        }
    }
}

extension LoadSink {
    package var judgesServers: Bool { true }
}
