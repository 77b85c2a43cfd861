// SPDX-License-Identifier: Apache-2.0

// The driver of a load task: it runs the load and decides where its body goes. `resume` starts the one Swift task that
// drives the load to the head of the response and as far as the read-ahead limit; then the reader of the body pulls the
// rest in its own task (`TaskDriver+Reading`). For a classic task the driver pushes the whole body into the sink, and
// for a download it writes the body to the file (`TaskDriver+Saving`).

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The parts of a task's work beside its load.
struct TaskWork {
    /// The classic task.
    var sink: (any LoadSink)?
    var download: DownloadWork?
    var upload: UploadWork?
    var background: BackgroundWork?
    /// A load of the same task that this one replaces before it has begun: a session that finishes its tasks admits no
    /// other new load.
    var predecessor: LoadHandle?
}

final class TaskDriver: LoadListener, StopListener {
    let context: LoadContext
    let state = Lock(LoadTaskState())
    let sink: (any LoadSink)?
    /// The file of a download. Set before the load begins, or by the driver when a data task becomes a download.
    private let work: Lock<DownloadWork?>
    var download: DownloadWork? { work.withLock { $0 } }
    /// The body of a resumable upload.
    private let upload: UploadWork?
    /// The transfer of the background agent that carries out the task; nil for a load of this process.
    let background: BackgroundWork?
    private let urgency = Lock(Urgency())
    /// The shared fetch that this task leads for other loads. Suspending the task fails it for them.
    private let ledFetch = Lock<SharedFetch?>(nil)
    /// True after the task was suspended, until a lost connection has been replaced. Bytes received before are read
    /// first.
    let wasSuspended = Atomic<Bool>(false)

    private struct Urgency: Sendable {
        /// The stream that PRIORITY_UPDATE names.
        var stream: PrioritizedStream?
        /// The priority that the task was given while it ran.
        var priority: TaskPriority?
    }

    /// - Parameter holdsSession: true if a session that finishes its tasks waits for this one even if it was never
    ///   resumed.
    init(
        _ core: Core, _ request: Request, _ decisions: Decisions?, _ parts: TaskWork = TaskWork(),
        holdsSession: Bool = false
    ) {
        (sink, upload, background) = (parts.sink, parts.upload, parts.background)
        work = Lock(parts.download)
        context = LoadContext(
            core, request, decisions, consumer: parts.download != nil ? .file : sink != nil ? .sink : .reader,
            owner: LoadOwner(isObserved: true, decisionCaller: sink, holdsSession: holdsSession))
        context.setListener(self)
        state.withLock { $0.counts.expectedToSend = request.body.map(\.length) ?? 0 }
        if !core.registry.enter(context.handle, inPlaceOf: parts.predecessor) {
            refuse(.sessionInvalidated(request.url))
        }
        if background == nil, core.requestDefaults.isBackground {
            refuse(.notInBackground("a background session has downloads and uploads of files only", request.url))
        }
    }

    /// Fails a task that cannot be loaded, before it begins.
    func refuse(_ error: LoadError) {
        if state.withLock({ $0.takeUnowned() }) != nil { complete(.failed(error)) }
    }

    var original: Request { context.original }
    var core: Core { context.core }
    var stopReason: StopReason? { context.stopReason }
    func stop(_ reason: StopReason) { context.stop(reason) }

    // MARK: Controls

    /// - Parameter wanted: nil for the priority of the calling task.
    func resume(_ wanted: TaskPriority? = nil) {
        let begins = state.withLock { state in
            let begins = state.resume(wanted ?? Task.currentPriority)
            // Under the lock, so that of calls by several threads the last one prevails.
            context.handle.setSuspended(false)
            if !begins { download?.suspendParts(false) }
            return begins
        }
        background?.setPaused(false)
        guard begins else { return }
        context.handle.holdsSession.store(true, ordering: .relaxed)
        // The agent enforces the timeouts of its transfers.
        if background == nil {
            context.handle.startClock()
            core.registry.watch(context.handle)
        }
        // Immediate: work that need not wait, such as sending on an idle connection, is done when this returns. The
        // caller's closures run in tasks of their own.
        Task.here(onLoop: core.configuration.loadsOnLoop, priority: wanted) { await self.drive() }
    }

    func suspend() {
        state.withLock { state in
            state.suspend()
            context.handle.setSuspended(true)
            download?.suspendParts(true)
        }
        background?.setPaused(true)
        ledFetch.withLock { $0.take() }?.settle(.failed)
        wasSuspended.store(true, ordering: .relaxed)
    }

    func prioritize(_ priority: TaskPriority) {
        let isBegun = state.withLock { state in
            if state.isBegun { state.priority = priority.rawValue }
            return state.isBegun
        }
        guard isBegun else { return }
        background?.prioritize(priority)
        let sending = urgency.withLock { urgency in
            urgency.priority = priority
            return urgency.stream
        }
        sending?.prioritize(urgency: priority.urgency)
    }

    func stopped() {
        guard let why = stopReason else { return }
        background?.cancel()
        if why != .idle { download?.stopParts(why) }
        // An idle timeout before the response may lead to a retry, and the sink is not called before the response.
        if why != .idle || state.withLock({ $0.response != nil }) { sink?.stopped() }
        guard let unowned = state.withLock({ $0.takeUnowned() }) else { return }
        unowned.exchange?.release()
        let phase: LoadError.Phase = unowned.exchange == nil ? .preparing : .receiving
        complete(.failed(LoadError(why, phase: phase).at(unowned.exchange?.response.url ?? original.url)))
    }

    func addHandle() { state.withLock { $0.addHandle() } }

    /// Removes a handle. Removing the last one ends the load in any phase, unless its events are read.
    func removeHandle() {
        // A file without a destination is deleted with its last reference, and a reader of events cannot get that
        // reference.
        let needsHandle = download.map { $0.options.destination == nil } ?? false
        let isAbandoned = state.withLock { $0.removeHandle(needsHandle: needsHandle) }
        guard isAbandoned, sink == nil, !outlivesHandles else { return }
        #if DEBUG
        if state.withLock({ $0.isBegun }), context.handle.stopReason == nil {
            DebugNote.write(
                "task \(context.emitter?.identity.id ?? 0) \(original.url.withoutSecrets) was cancelled, because its "
                    + "last reference was released: keep the task until it is complete, or cancel it")
        }
        #endif
        stop(.cancelled)
    }

    /// Removes a reader of events.
    func forget(_ listener: EventQueue) {
        let isAbandoned = state.withLock { $0.forget(listener) }
        if isAbandoned, sink == nil, !outlivesHandles { stop(.cancelled) }
    }

    /// True for a task that the agent carries out, once it was resumed.
    private var outlivesHandles: Bool { background != nil && state.withLock { $0.isBegun } }

    // MARK: The driver

    // Each load task has a Swift task of its own, whose stack grows by about 1 KB at a time; a larger frame costs an
    // allocation of its size. Hence the functions marked @inline(never).

    private func drive() async {
        if let background { return await carryOut(background) }
        do throws(LoadError) {
            let result = try await begin()
            let exchange = result.exchange
            try become(result)
            if let download { return try await save(result, download) }
            context.emit(.responded(exchange.response))
            state.withLock { $0.respond(exchange.response) }.wake()
            if case .becomeStream = result.disposition { return try handOver(exchange) }
            if let sink { try await push(exchange, into: sink) } else { try await read(exchange) }
        } catch {
            await fail(error)
        }
    }

    /// Ends the task with an error. The file of a download is left on a thread that may block: a token of it is read
    /// and synchronised, and hundreds of downloads may end at once, with their session.
    @inline(never)
    private func fail(_ error: LoadError) async {
        guard let download, download.hasFile else { return complete(.failed(error)) }
        let token = await BlockingThreads.files.call(.never) { () -> ResumeToken? in
            defer { download.leave() }
            return download.resumeToken(after: error)
        }
        complete(.failed(error.with(token ?? nil)), hasLeft: true)
    }

    private func begin() async throws(LoadError) -> Load.Result {
        if let upload { return try await send(upload) }
        guard let download else { return try await Load(context: context).run(original) }
        return try await resume(download)
    }

    @inline(never)
    private func send(_ upload: UploadWork) async throws(LoadError) -> Load.Result {
        let first: Request
        do throws(LoadError) { first = try await upload.begin(context.handle) } catch { throw error.at(original.url) }
        return try await Load(context: context, purpose: .resumableUpload(upload)).run(first)
    }

    @inline(never)
    private func resume(_ download: DownloadWork) async throws(LoadError) -> Load.Result {
        var request = original
        do throws(LoadError) { try await download.prepare(&request) } catch { throw error.at(original.url) }
        return try await Load(context: context).run(request)
    }

    // MARK: Becoming another task

    /// Turns a data task into a download or a stream, if the response decision says so.
    private func become(_ result: Load.Result) throws(LoadError) {
        do throws(LoadError) {
            switch result.disposition {
            case .allow, .cancel: break
            case .becomeDownload(let options): try becomeDownload(options)
            case .becomeStream: try becomeStream(result.exchange)
            }
        } catch {
            throw result.exchange.failed(error)
        }
    }

    private func becomeDownload(_ options: DownloadOptions) throws(LoadError) {
        guard sink == nil, download == nil, let waiting = state.withLock({ $0.becomeDownload() }) else {
            throw .notADataTask
        }
        work.withLock { $0 = DownloadWork(options, nil, core.configuration) }
        waiting.wake()
    }

    private func becomeStream(_ exchange: any Exchange) throws(LoadError) {
        guard let network = exchange.network else { throw .notAStream }
        guard !network.isShared else {
            throw LoadError(
                .badDecision, phase: .deciding, party: .local,
                detail: "other loads share an HTTP/2 connection: HTTP/1.1 alone can become a stream")
        }
        // The connection of a response with faults carries nothing after it.
        if let violation = exchange.head?.tolerated.all.first { throw LoadError(violation, .waiting) }
        guard download == nil, !exchange.isSending, state.withLock({ $0.becomeStream() }) else { throw .notAStream }
    }

    /// Hands the connection over to a stream task.
    private func handOver(_ exchange: any Exchange) throws(LoadError) {
        guard let connection = exchange.surrender() else {
            throw exchange.failed(LoadError(stopReason, or: .notAStream))
        }
        let task = StreamTask(adopting: connection, inPlaceOf: context)
        context.emit(.becameStream(task))
        complete(.finished)
    }

    /// - Parameter hasLeft: true if the file of the download was left before; the error then has its token.
    @inline(never)
    func complete(_ outcome: LoadTaskState.Outcome, _ trailers: Headers = Headers(), hasLeft: Bool = false) {
        var outcome = outcome
        if case .failed(let error) = outcome { outcome = .failed(context.handle.worded(error)) }
        if let download, !hasLeft {
            if case .failed(let error) = outcome { outcome = .failed(error.with(download.resumeToken(after: error))) }
            // Released before the end is announced, because an observer of the end may use the file at once.
            download.leave()
        }
        context.announceEnd(outcome.error)
        background?.settle(outcome.error.map { .failure($0) } ?? .success(()))
        // The task has ended when its session has, and its session is without it when a waiter continues.
        let waiting = state.withLock { [outcome] in $0.end(outcome, trailers) }
        context.leave()
        waiting.wake()
    }

    // MARK: Events

    func process(_ event: LoadEvent) {
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

    func hasStream(_ stream: PrioritizedStream?) {
        let priority = urgency.withLock { urgency in
            urgency.stream = stream
            return urgency.priority
        }
        // The priority was changed before the task had a stream.
        if let priority { stream?.prioritize(urgency: priority.urgency) }
    }

    func leads(_ fetch: SharedFetch) {
        ledFetch.withLock { $0 = fetch }
        if context.isSuspended { ledFetch.withLock { $0.take() }?.settle(.failed) }
    }

    /// Returns a queue of the events from now on; after the end, of the last two events.
    func listen() -> EventQueue {
        let queue = EventQueue()
        let (outcome, metrics) = state.withLock { state in
            if state.outcome == nil { state.listeners.append(queue) }
            return (state.outcome, state.metrics)
        }
        guard let outcome else {
            watchForForgottenBody()
            return queue
        }
        if let metrics { queue.append(.metrics(metrics)) }
        queue.append(.completed(outcome.error))
        return queue
    }
}

extension LoadEvent {
    /// True for the last event of a data task that becomes another task.
    fileprivate var isHandOver: Bool {
        switch self {
        case .becameDownload, .becameStream: true
        default: false
        }
    }
}

extension LoadCounts {
    mutating func note(_ event: LoadEvent) {
        switch event {
        case .bodySent(let bytes): (sent, expectedToSend) = (bytes.total, bytes.expected)
        case .responded(let response): expectedToReceive = response.expectedLength
        case .received(let bytes): received = bytes.total
        case .resumed(let offset, let expected): (received, expectedToReceive) = (offset, expected)
        case .canonicalized, .informational, .challenged, .redirected, .retrying, .retryRefused,
            .waitingForConnectivity,
            .stored,
            .notStored, .becameDownload, .becameStream, .metrics, .completed:
            break
        }
    }
}
