// The load behind a handle. `resume` makes the one task that drives it: to the head of the answer and
// a little further, then whoever reads the body pulls it in his own task (`TaskLoad+Reading`). The classic shape
// has the whole body pushed into its sink instead, and a download has it written to its file (`TaskLoad+Saving`).

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

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
    var lastHop: Hop?
    /// It was suspended, and no connection was lost since: what had come by then is read first.
    let hasRested = Atomic<Bool>(false)

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

    func addHandle() { state.withLock { $0.addHandle() } }

    /// A handle is gone. With the last one the load ends, wherever it is, unless its events are read.
    func removeHandle() {
        // A file without a name goes with its last reference: no reader of events can have it.
        let needsHandle = download.map { $0.options.destination == nil } ?? false
        let isAbandoned = state.withLock { $0.removeHandle(needsHandle: needsHandle) }
        if isAbandoned, sink == nil { stop(.cancelled) }
    }

    /// A reader of events is gone.
    func forget(_ listener: EventQueue) {
        let isAbandoned = state.withLock { $0.forget(listener) }
        if isAbandoned, sink == nil { stop(.cancelled) }
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
        return nil
    }

    override func becomeDownload(_ options: DownloadOptions) throws(LoadError) {
        guard sink == nil, download == nil, let waiting = state.withLock({ $0.becomeDownload() }) else {
            return try super.becomeDownload(options)
        }
        work.withLock { $0 = DownloadWork(options, nil, core.configuration) }
        waiting.wake()
    }

    override func becomeStream(_ exchange: any Exchange) throws(LoadError) {
        guard download == nil, exchange.network is HTTPExchange, !exchange.isSending,
            state.withLock({ $0.becomeStream() })
        else {
            guard exchange.network is HTTP2Exchange else { return try super.becomeStream(exchange) }
            throw LoadError(
                .badDecision, phase: .deciding, party: .local,
                detail: "other loads share an HTTP/2 connection: HTTP/1.1 alone can become a stream")
        }
    }

    /// The connection is a stream's from now on.
    private func handOver(_ exchange: any Exchange) {
        guard let http = exchange.network as? HTTPExchange, let (transport, received, origin) = http.surrender() else {
            return
        }
        let task = StreamTask(
            adopting: transport, buffered: received, isSecure: origin.isSecure, origin: origin, inPlaceOf: self)
        emission?.emit(.becameStream(task), self)
        complete(.finished)
    }

    @inline(never)
    func complete(_ outcome: LoadTaskState.Outcome, _ trailers: Headers = Headers()) {
        var outcome = outcome
        if let download {
            if case .failed(let error) = outcome { outcome = .failed(error.with(download.resumeToken(after: error))) }
            // An observer of the end may go on with the file at once.
            download.leave()
        }
        end(outcome.error)
        state.withLock { [outcome] in $0.end(outcome, trailers) }.wake()
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
        case .canonicalized, .informational, .challenged, .redirected, .retrying, .waitingForConnectivity, .stored,
            .notStored, .becameDownload, .becameStream,
            .metrics, .completed:
            break
        }
    }
}
