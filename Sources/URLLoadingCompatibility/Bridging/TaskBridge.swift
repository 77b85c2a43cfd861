// Between a load and the task object of the classic shape. Events come in from whoever drives the
// load, and go into the mailbox; calls go out on the lane. No lock is held while calling out, and
// nobody waits for anybody on a thread.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class TaskBridge: LoadSink, Sendable {
    enum Kind: Sendable { case data, download, socket, stream }

    /// What a task without delegate calls gives its result to.
    enum Handler: Sendable {
        case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
        case file(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
        /// Who reads the body piece by piece.
        case bytes(BytePipe)
    }

    let identifier: Int
    let original: URLRequest
    let lane: DelegateLane
    let hasHandler: Bool
    private let pipe: BytePipe?
    let kind: Kind
    /// Bytes that a handler gets at most.
    let limit: Int
    let state: Lock<State>

    struct State: Sendable {
        var mailbox: Mailbox
        /// Until the last call is made: whoever has a task that goes on has its session.
        var session: URLSession?
        var task: URLSessionTask?
        var handler: Handler?
        /// Until the last call is made; `nil` also for a load that cannot begin.
        var load: BridgedLoad?
        /// How it stood at the end.
        var last: LoadSnapshot?
        /// Why the load cannot begin.
        var fate: LoadError?
        var isCanceled = false
        var current: URLRequest
        /// What the delegate has chosen to send next.
        var chosen: URLRequest?
        /// What a protocol of the program's wants to go on with.
        var proposed: URLRequest?
        var response: URLResponse?
        /// The same, as the core has it.
        var head: Response?
        /// Its body is several, one in the place of the other.
        var parts: MixedParts?
        /// The delegate was asked about it before any of its body was read.
        var isJudged = false
        /// Of a data task that became a download.
        var spool: Spool?
        /// What comes of the body goes there.
        var isSpooling = false
        /// The delegate has said so before any of the body was read.
        var isToBecomeDownload = false
        /// The body of the request as it was made; taken by the first sending.
        nonisolated(unsafe) var stream: InputStream?
        var beginning = Beginning.resting
        /// It is suspended.
        var isHeldUp = false
        /// Its load was told to begin.
        var hasBegun = false
        /// The load that ends now has another in its place.
        var isReplacing = false
        /// Whose word its connections are trusted by, if that is not the session's delegate.
        var trustee: ObjectIdentifier?
        /// It goes on with an earlier load.
        var resumption: Resumption?
        /// What it sends, if it is an upload.
        var upload: UploadWork?
        /// With what that goes on.
        var ticket: UploadTicket?
        /// What a WebSocket's server has said in leaving.
        var closing: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)?
    }
    /// Somebody has asked for the task's.
    let hasProgress = Atomic<Bool>(false)

    init(_ session: URLSession, _ identifier: Int, _ request: URLRequest, _ handler: Handler?, _ kind: Kind) {
        self.kind = kind
        self.identifier = identifier
        original = request
        lane =
            session.lane.isSerial
            ? session.lane : DelegateLane(session.lane.queue, isOfProgram: session.lane.isOfProgram)
        limit = session.core.configuration.limits.collectedBodySize
        hasHandler = handler != nil
        if case .bytes(let pipe)? = handler { self.pipe = pipe } else { pipe = nil }
        let mailbox = Mailbox(collects: hasHandler, saves: kind == .download && !hasHandler)
        state = Lock(
            State(
                mailbox: mailbox, session: session, handler: handler, current: request, stream: request.httpBodyStream))
    }

    // MARK: The controls

    func begin(_ load: Result<BridgedLoad, LoadError>) {
        let (stopped, fate) = state.withLock { state -> (BridgedLoad?, LoadError?) in
            guard !state.mailbox.isOver else { return (nil, nil) }
            switch load {
            case .success(let load): state.load = load
            case .failure(let error): state.fate = error
            }
            // Invalidated while it was made.
            return state.isCanceled ? (state.load, state.fate) : (nil, nil)
        }
        stopped?.cancel()
        if let fate { finish(fate) }
    }

    /// The load begins, or goes on.
    func begin(_ priority: Float) {
        let (isFirst, load) = state.withLock { state in
            defer { state.hasBegun = true }
            return (!state.hasBegun, state.load)
        }
        if isFirst, hasOtherTrustee { load?.decide(by: decisions) }
        if isFirst, case .stream(let stream)? = load { watchRoutes(of: stream) }
        let fate = obey(load, isHeldUp: false, priority)
        if let fate { finish(fate) }
    }

    /// Makes the load do what the last of several calls from several threads has said.
    /// - Returns: why it cannot begin.
    @discardableResult
    private func obey(_ load: BridgedLoad?, isHeldUp: Bool, _ priority: Float = URLSessionTask.defaultPriority)
        -> LoadError?
    {
        var (load, isHeldUp, fate) = (load, isHeldUp, nil as LoadError?)
        while true {
            if isHeldUp { load?.suspend() } else { resume(load, TaskPriority(priority)) }
            let said = isHeldUp
            (load, isHeldUp, fate) = state.withLock { ($0.load, $0.isHeldUp, $0.fate) }
            if said == isHeldUp { return fate }
        }
    }

    /// Decisions of the session know by `current` whose load they are about; a load that tells its sink of each question
    /// (`asking`) need not carry it along.
    private func resume(_ load: BridgedLoad?, _ priority: TaskPriority?) {
        guard kind == .socket || kind == .stream else {
            load?.resume(priority)
            return
        }
        Self.$current.withValue(self) { load?.resume(priority) }
    }

    func asking<Answer: Sendable>(_ decision: @Sendable () async throws -> Answer) async throws -> Answer {
        try await Self.$current.withValue(self) { try await decision() }
    }

    func prioritize(_ priority: Float) { state.withLock { $0.load }?.prioritize(TaskPriority(priority) ?? .medium) }

    func suspend() {
        let (hasBegun, load, isHeldUp) = state.withLock { state in
            state.isHeldUp = state.task?.isHeldUp ?? true
            return (state.hasBegun, state.load, state.isHeldUp)
        }
        if hasBegun { obey(load, isHeldUp: isHeldUp) }
    }

    func cancel() { cancel(LoadError(.cancelled, phase: .deciding, party: .local, url: original.url)) }

    /// What the delegate has not heard by now it does not hear any more, but that the task is over.
    func cancel(_ error: LoadError) {
        let (released, load, fate, hasEnded) = state.withLock { state in
            state.isCanceled = true
            return (state.mailbox.fail(error), state.load, state.fate, state.mailbox.hasEnded)
        }
        released.settle()
        stopWaiting()
        load?.cancel()
        if fate != nil { finish(error) }
        // The load had ended, and waited for an answer.
        if hasEnded { schedule() }
    }

    func finish(_ error: LoadError?) {
        state.withLock { $0.mailbox.finish(error) }
        schedule()
    }

    func schedule() {
        if state.withLock({ $0.mailbox.schedule() }) { lane.append(.bridge(self)) }
    }

    // MARK: From the load

    func emit(_ event: LoadEvent) {
        if state.withLock({ $0.isReplacing }) { return }
        if hasProgress.load(ordering: .relaxed) { showProgress(event) }
        switch event {
        case .canonicalized(let request):
            return state.withLock { $0.current = URLRequest(request, like: $0.current) }
        case .challenged, .retrying, .stored, .notStored, .becameDownload: return
        case .becameStream(let stream): return becameStream(stream)
        case .received(let bytes):
            guard kind == .download, downloadDelegate != nil else { return }
            state.withLock { $0.mailbox.put(written: bytes) }
        case .resumed(let offset, let expected):
            state.withLock { $0.mailbox.put(resumedAt: offset, expected: expected) }
        case .metrics(let metrics):
            guard taskDelegate != nil else { return }
            return state.withLock { $0.mailbox.put(metrics) }
        case .waitingForConnectivity: state.withLock { $0.mailbox.putWaiting() }
        case .informational(let head):
            guard taskDelegate != nil, let url = state.withLock({ $0.current.url }) else { return }
            let response = HTTPURLResponse(Response(url: url, http: head), head)
            state.withLock { $0.mailbox.put(informational: response) }
        case .redirected(let redirect):
            return state.withLock { state in
                let proposed = state.proposed.take()
                state.current = state.chosen.take() ?? proposed ?? URLRequest(redirect.request, like: state.current)
            }
        case .responded(let response): return respond(response)
        case .bodySent(let bytes): state.withLock { $0.mailbox.put(sent: bytes) }
        case .completed(let error):
            noteClosing()
            return complete(error)
        }
        schedule()
    }

    private func showProgress(_ event: LoadEvent) {
        guard let task = state.withLock({ $0.task }) else { return }
        if case .completed(let error) = event {
            task.showProgress(isWhole: error == nil)
        } else {
            task.showProgress(isWhole: false)
        }
    }

    /// Heard with what comes next: mostly the body is already here.
    private func respond(_ response: Response) {
        let isHeard = kind == .data && (hasHandler || dataDelegate != nil)
        let (method, judged) = state.withLock { ($0.current.httpMethod, $0.isJudged ? $0.response : nil) }
        let known = judged ?? URLResponse.make(response, to: method)
        let becomesDownload = state.withLock { state in
            (state.response, state.head) = (known, response)
            state.mailbox.put(known, isHeard: isHeard, isAsked: !state.isJudged)
            if state.isToBecomeDownload { state.mailbox.hold() }
            if isHeard, !hasHandler { state.parts = MixedParts(response) }
            return state.isToBecomeDownload
        }
        if becomesDownload { becomeDownload() }
        pipe?.respond(known)
    }

    func receive(_ chunk: Chunk) async {
        if let pipe { return await pipe.put(chunk) }
        let (spool, hasParts) = state.withLock { ($0.isSpooling ? $0.spool : nil, $0.parts != nil) }
        if let spool { return await write(Data(chunk), to: spool) }
        if hasParts { return await receiveParts(chunk) }
        let (goesOn, count) = state.withLock { ($0.mailbox.put(chunk), $0.mailbox.collectedCount) }
        if count > limit { cancel(LoadError(.bodyTooLarge, phase: .receiving, party: .local, url: original.url)) }
        guard !goesOn else { return }
        schedule()
        await withUnsafeContinuation { continuation in
            if !state.withLock({ $0.mailbox.wait(continuation) }) { continuation.resume() }
        }
    }

    func pause() { schedule() }

    func stopped() {
        // That of the load which gives way: the other still has its questions.
        if state.withLock({ $0.isReplacing }) { return }
        state.withLock { $0.mailbox.stop() }.settle()
        pipe?.release()
    }

    // MARK: To the delegate

    /// On the lane.
    func makeCalls() {
        guard state.withLock({ $0.mailbox.beginTurn() }) else { return lane.append(.bridge(self)) }
        for _ in 0..<lane.callsPerTurn {
            let (next, idle) = state.withLock { state in
                let next = state.mailbox.next()
                return (next, next == nil ? state.mailbox.takeIdle() : nil)
            }
            guard let (call, waiter) = next else { return idle?.resume() ?? () }
            make(call)
            waiter?.resume()
        }
        let (goesOn, idle) = state.withLock { state in
            let goesOn = state.mailbox.endTurn()
            return (goesOn, goesOn ? nil : state.mailbox.takeIdle())
        }
        idle?.resume()
        if goesOn { lane.append(.bridge(self)) }
    }

    private func make(_ call: Mailbox.Call) {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        guard let session, let task else { return }
        switch call {
        case .waiting: taskDelegate?.urlSession(session, taskIsWaitingForConnectivity: task)
        case .informational(let response):
            taskDelegate?.urlSession(session, task: task, didReceiveInformationalResponse: response)
        case .sent(let bytes):
            taskDelegate?.urlSession(
                session, task: task, didSendBodyData: Int64(bytes.count), totalBytesSent: bytes.total,
                totalBytesExpectedToSend: bytes.expected ?? -1)
        case .question(let question): question.put(to: session, task)
        case .response(let response): ask(response, session, task)
        case .resumed(let offset, let expected):
            guard let task = task as? URLSessionDownloadTask else { return }
            downloadDelegate?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected ?? -1)
        case .data(let data):
            guard let task = task as? URLSessionDataTask else { return }
            dataDelegate?.urlSession(session, dataTask: task, didReceive: data)
        case .written(let bytes):
            guard let task = task as? URLSessionDownloadTask else { return }
            downloadDelegate?.urlSession(
                session, downloadTask: task, didWriteData: Int64(bytes.count), totalBytesWritten: bytes.total,
                totalBytesExpectedToWrite: bytes.expected ?? -1)
        case .saved:
            guard let task = task as? URLSessionDownloadTask else { return }
            // Removed, unless somebody moves it, when the task is over.
            if let file = savedFile {
                downloadDelegate?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
            }
        case .becameDownload(let old, let new):
            dataDelegate?.urlSession(session, dataTask: old, didBecome: new)
            Task { await openSpool() }
        case .becameStream(let stream):
            if let task = task as? URLSessionDataTask {
                dataDelegate?.urlSession(session, dataTask: task, didBecome: stream)
            }
            leave(session, task)
            stream.resume()
        case .opened, .closed: tell(call, session, task as? URLSessionWebSocketTask)
        case .readClosed, .writeClosed, .betterRoute, .captured: tell(call, session, task as? URLSessionStreamTask)
        case .metrics(let metrics):
            let path = LatePath(session.core.networkMonitor)
            taskDelegate?.urlSession(
                session, task: task, didFinishCollecting: URLSessionTaskMetrics(metrics, original, path))
        case .finished(let error): end(error, session, task)
        }
    }

    /// Known from the moment on at which the task is over, and its delegate about to hear so.
    var error: (any Error)? {
        let (error, ticket) = state.withLock { ($0.mailbox.error, $0.ticket) }
        return error.map { $0.classic(ticket) }
    }

    private func end(_ error: LoadError?, _ session: URLSession, _ task: URLSessionTask) {
        let ticket = state.withLock { $0.ticket }
        let error = error.map { $0.classic(ticket) }
        let (handler, response, body) = state.withLock { state in
            defer { state.handler = nil }
            return (state.handler, state.response, state.mailbox.takeCollected())
        }
        // Removed, unless somebody moves it, when this returns.
        var file: DownloadedFile?
        if error == nil { file = savedFile }
        switch handler {
        case .data(let handler)?: handler(error == nil ? body : nil, response, error)
        case .file(let handler)?: handler(file?.url, response, error)
        case .bytes(let pipe)?: pipe.finish(error)
        case nil:
            taskDelegate?.urlSession(session, task: task, didCompleteWithError: error)
        }
        withExtendedLifetime(file) {}
        leave(session, task)
    }

    /// The last call was made.
    func leave(_ session: URLSession, _ task: URLSessionTask) {
        state.withLock { state in
            state.last = state.load?.snapshot
            (state.load, state.task, state.session, state.stream) = (nil, nil, nil, nil)
            (state.spool, state.upload, state.resumption) = (nil, nil, nil)
        }
        task.forgetDelegate()
        session.left(identifier)
    }

    // MARK: Delegates

    /// The task's own delegate, or that of the session.
    var taskDelegate: (any URLSessionTaskDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        return task?.ownDelegate ?? session?.delegates.task
    }

    /// Its connections ask the session's.
    var sessionDelegate: (any URLSessionDelegate)? { state.withLock { $0.session }?.delegates.session }

    var downloadDelegate: (any URLSessionDownloadDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionDownloadDelegate { return own }
        return session?.delegates.download
    }

    var socketDelegate: (any URLSessionWebSocketDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionWebSocketDelegate { return own }
        return session?.delegates.socket
    }

    var streamDelegate: (any URLSessionStreamDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionStreamDelegate { return own }
        return session?.delegates.stream
    }

    var dataDelegate: (any URLSessionDataDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionDataDelegate { return own }
        return session?.delegates.data
    }
}
