// The session of the classic shape: what it is made of, and how it ends. Loading is the core's.

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// Loads URLs with tasks, delegates and completion handlers.
///
/// ```swift
/// let task = URLSession.shared.dataTask(with: url) { data, response, error in
///     guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else { return }
///     show(data)
/// }
/// task.resume()
/// ```
/// All of it may be used from any thread. A session that nobody holds any more, and whose tasks are over,
/// closes its connections and lets go of its delegate; one that was invalidated tells its delegate.
open class URLSession: NSObject, @unchecked Sendable {
    /// What becomes of a task when its response is known.
    public enum ResponseDisposition: Int, Sendable {
        /// It ends with `URLError.cancelled`.
        case cancel = 0
        /// Its body is loaded.
        case allow = 1
        /// Its body is loaded into a file, by a download task that takes its place: the delegate hears `didBecome
        /// downloadTask`, and nothing more of this one.
        case becomeDownload = 2
        /// Its connection becomes a stream: the delegate hears `didBecome streamTask`, and nothing more of this one. For
        /// HTTP/1.1, and requests with a field Upgrade; other tasks fail, for a part of the body may have been read by then.
        case becomeStream = 3
    }

    /// What becomes of a task whose ``URLSessionTask/earliestBeginDate`` has come.
    public enum DelayedRequestDisposition: Sendable {
        /// It ends with `URLError.cancelled`.
        case cancel
        /// Its request is sent.
        case continueLoading
        /// The request beside it is sent; if there is none, its own.
        case useNewRequest
    }

    /// What is to be done about a challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// The credential beside it is used; `nil` goes on without one.
        case useCredential = 0
        /// As if nobody had been asked.
        case performDefaultHandling = 1
        /// The load ends with `URLError.cancelled`.
        case cancelAuthenticationChallenge = 2
        /// Another of the methods that the server offers is asked for next; if there is none, its response is the result.
        case rejectProtectionSpace = 3
    }

    let core: Session
    let lane: DelegateLane
    private let settings: URLSessionConfiguration
    /// Of the settings, which nobody can change any more.
    final let values: URLSessionConfiguration.Values
    private let isShared: Bool
    private let members: Lock<Members>

    private struct Members: Sendable {
        var delegates: Delegates
        var description: String?
        var tasks: [Int: URLSessionTask] = [:]
        var lastIdentifier = 0
        var isInvalid = false
        var isEmptied = false
    }

    /// The delegate, as what it is: casts are slow.
    struct Delegates: Sendable {
        let session: (any URLSessionDelegate)?
        let task: (any URLSessionTaskDelegate)?
        let data: (any URLSessionDataDelegate)?
        let download: (any URLSessionDownloadDelegate)?
        let socket: (any URLSessionWebSocketDelegate)?
        let stream: (any URLSessionStreamDelegate)?

        init(_ delegate: (any URLSessionDelegate)?) {
            session = delegate
            task = delegate as? any URLSessionTaskDelegate
            data = delegate as? any URLSessionDataDelegate
            download = delegate as? any URLSessionDownloadDelegate
            socket = delegate as? any URLSessionWebSocketDelegate
            stream = delegate as? any URLSessionStreamDelegate
        }
    }

    /// The core's own shared session, unless the program wants something of it that only the classic shape has.
    private static let sharedSession = URLSession(
        shared: URLCache.isSharedReplaced ? Session(Configuration(URLSessionConfiguration.default.values)) : .shared)

    /// One session for everybody, with the default configuration and no delegate. It cannot be invalidated.
    open class var shared: URLSession { sharedSession }

    /// A session without a delegate: for tasks with completion handlers.
    /// - Parameter configuration: copied; later changes do not reach the session.
    public init(configuration: URLSessionConfiguration) {
        settings = configuration.ownCopy
        values = settings.values
        core = Session(Configuration(values))
        isShared = false
        lane = DelegateLane(Self.makeQueue())
        members = Lock(Members(delegates: Delegates(nil)))
    }

    /// - Parameters:
    ///   - configuration: copied; later changes do not reach the session.
    ///   - delegate: held until the session has been invalidated and has told it so.
    ///   - queue: where the delegate and all completion handlers are called. For a queue that runs several
    ///     operations at a time only the calls of one task come in order, one at a time. `nil` for a
    ///     serial queue of the session's own.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {
        settings = configuration.ownCopy
        values = settings.values
        core = Session(Configuration(values), decisions: delegate == nil ? nil : Self.decisions)
        isShared = false
        lane = DelegateLane(queue ?? Self.makeQueue())
        members = Lock(Members(delegates: Delegates(delegate)))
    }

    private init(shared core: Session) {
        settings = .default
        values = settings.values
        self.core = core
        isShared = true
        lane = DelegateLane(Self.makeQueue())
        members = Lock(Members(delegates: Delegates(nil)))
    }

    /// Asks the delegates of the load that wants to know. One for all: connections that it has let through serve all tasks.
    static let decisions: Decisions = {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            try await TaskBridge.current?.decide(challenge) ?? .performDefaultHandling
        }
        return decisions
    }()

    private static func makeQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.name = "URLSession"
        queue.maxConcurrentOperationCount = 1
        return queue
    }

    // MARK: What it is

    /// Where the delegate and all completion handlers are called.
    open var delegateQueue: OperationQueue { lane.queue }
    /// The delegate; `nil` once it was told that the session is invalid.
    open var delegate: (any URLSessionDelegate)? { delegates.session }
    /// A copy of the configuration: changing it changes nothing here.
    open var configuration: URLSessionConfiguration { settings.ownCopy }
    /// For the program's own use.
    open var sessionDescription: String? {
        get { members.withLock { $0.description } }
        set { members.withLock { $0.description = newValue } }
    }

    /// A cache that must be asked by its methods.
    final var ownCache: URLCache? { isShared && core === Session.shared ? nil : values.cache.flatMap { $0.isPlain ? nil : $0 } }

    final var delegates: Delegates { members.withLock { $0.delegates } }

    // MARK: What it remembers

    /// Forgets cookies, stored responses and credentials of the session's storages, which others may use too, and closes the
    /// connections that are not in use. Nothing is revoked of tasks that go on.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        Self.keeping.async { [self] in
            forget()
            lane.append(.call(completionHandler))
        }
    }

    /// Writes what the session's storages have not yet written to their files, and closes the connections that are not in
    /// use.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        Task { [self] in
            await writeOut()
            lane.append(.call(completionHandler))
        }
    }

    // MARK: Tasks

    /// A suspended task that tells the delegate of its response and body. Without a delegate the request is
    /// sent and its answer dropped.
    ///
    /// A task of a session that was invalidated fails with `URLError.cancelled` when it is resumed.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, nil) }

    /// A suspended task that loads a URL with GET; see ``dataTask(with:)-(URLRequest)``.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), nil) }

    /// A suspended task that gives its result to a closure. The delegate does not hear of its response and
    /// body, but is asked about redirects.
    /// - Parameter completionHandler: called exactly once, on the ``delegateQueue``, with the whole body
    ///   and the response; or with a `URLError`, and the response if there was one.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeDataTask(request, .data(completionHandler)) }

    /// The same for a URL, loaded with GET.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), .data(completionHandler)) }

    // MARK: Uploads

    /// A suspended task that sends a file; the file is not held in memory. The request's own body does not count.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUpload(request, .file(fileURL), nil)
    }

    /// A suspended task that sends these bytes. The request's own body does not count.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUpload(request, .data(bodyData), nil)
    }

    /// A suspended task that asks its delegate for the stream to send (`needNewBodyStream`).
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUpload(request, .demanded, nil)
    }

    /// The same as with a delegate, the result given to a closure, once, on the ``delegateQueue``.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeUpload(request, .file(fileURL), .data(completionHandler)) }

    /// The same as with a delegate, the result given to a closure, once, on the ``delegateQueue``.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeUpload(request, .data(bodyData ?? Data()), .data(completionHandler)) }

    // MARK: Downloads

    /// A suspended task that loads into a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownload(request, nil) }

    /// A suspended task that loads into a file, with GET.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { makeDownload(URLRequest(url: url), nil) }

    /// A suspended task that goes on with a download that was cancelled or failed. One whose data makes no sense fails
    /// with `URLError.cannotOpenFile` when it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask { makeResumed(resumeData, nil) }

    /// A suspended task that loads into a file.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``. The file is removed when it returns, unless
    ///   it was moved by then.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeDownload(request, .file(completionHandler)) }

    /// The same for a URL, loaded with GET.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeDownload(URLRequest(url: url), .file(completionHandler)) }

    /// The same for a download that is gone on with.
    open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeResumed(resumeData, .file(completionHandler)) }

    // MARK: Conversations

    /// A suspended task that opens a WebSocket; `ws` and `wss`.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { makeSocket(URLRequest(url: url), []) }

    /// The same, offering subprotocols, best first.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        makeSocket(URLRequest(url: url), protocols)
    }

    /// The same for a request: its fields go with the handshake, and its time-out is that of the way there. Subprotocols
    /// are those of its field Sec-WebSocket-Protocol.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        let offered = request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") ?? ""
        let names = offered.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        return makeSocket(request, names.filter { !$0.isEmpty })
    }

    /// A suspended task that connects to a port. A host that is none, or a port out of 1 to 65535, fails it when it is
    /// resumed.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        makeStream(hostname, port)
    }

    final func makeDataTask(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDataTask {
        makeTask(request, .data, handler, { URLSessionDataTask($0) }) { self.load(request, $0, self.pushed) }
    }

    /// A load whose body goes to its bridge.
    final func pushed(_ request: Request, _ bridge: TaskBridge) -> Result<BridgedLoad, LoadError> {
        .success(.data(core.dataTask(request, decisions: bridge.decisions, sink: bridge, holdsSession: true)))
    }

    /// - Parameter make: of a request that can be sent.
    final func load(
        _ request: URLRequest, _ bridge: TaskBridge, _ make: (Request, TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Result<BridgedLoad, LoadError> {
        requested(request, for: bridge).flatMap { make($0, bridge) }
    }

    /// What of a request goes to the core.
    final func requested(_ request: URLRequest, for bridge: TaskBridge) -> Result<Request, LoadError> {
        guard marksRequests else { return Request.make(request, settings.requestCachePolicy) }
        return Request.make(request, settings.requestCachePolicy).map { made in
            var made = made
            bridge.mark(&made)
            return made
        }
    }

    /// - Parameters:
    ///   - isSuccessor: it goes on with the load of another task, though the session takes no new ones.
    ///   - load: makes its load; suspended.
    final func makeTask<Made: URLSessionTask>(
        _ request: URLRequest, _ kind: TaskBridge.Kind, _ handler: TaskBridge.Handler?, isSuccessor: Bool = false,
        _ make: (TaskBridge) -> Made,
        _ load: (TaskBridge) -> Result<BridgedLoad, LoadError>
    ) -> Made {
        let identifier = members.withLock { members in
            members.lastIdentifier += 1
            return members.lastIdentifier
        }
        let bridge = TaskBridge(self, identifier, request, handler, kind)
        let task = make(bridge)
        bridge.state.withLock { $0.task = task }
        let isLate = members.withLock { members in
            let isLate = members.isInvalid && !isSuccessor
            if !isLate { members.tasks[identifier] = task }
            return isLate
        }
        bridge.begin(isLate ? .failure(.tooLate(request)) : load(bridge))
        announce(task)
        return task
    }

    /// The delegate of the task that is being made by a verb.
    @TaskLocal static var awaitedDelegate: (any URLSessionTaskDelegate)?

    /// The first that a delegate hears of a task: here and now, before anybody can resume it.
    private func announce(_ task: URLSessionTask) {
        if let own = Self.awaitedDelegate { task.delegate = own }
        // Tasks that the delegate makes now are no verb's.
        Self.$awaitedDelegate.withValue(nil) {
            (task.ownDelegate ?? delegates.task)?.urlSession(self, didCreateTask: task)
        }
    }

    /// A task has another in its place.
    final func replace(_ identifier: Int, with task: URLSessionTask) {
        members.withLock { if $0.tasks[identifier] != nil { $0.tasks[identifier] = task } }
    }

    final var requestCachePolicy: URLRequest.CachePolicy { settings.requestCachePolicy }

    /// Gives all tasks that are not over to a closure, on the ``delegateQueue``.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = currentTasks
        lane.append(.call { completionHandler(tasks) })
    }

    /// Gives the tasks that are not over to a closure, on the ``delegateQueue``, by kind.
    open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = Self.byKind(currentTasks)
        lane.append(.call { completionHandler(tasks.0, tasks.1, tasks.2) })
    }

    /// The tasks that are not over, by kind: data, upload, download.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async { Self.byKind(currentTasks) }
    }

    private static func byKind(
        _ tasks: [URLSessionTask]
    ) -> ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
        let others = tasks.filter { !($0 is URLSessionUploadTask) }
        return (others.compactMap { $0 as? URLSessionDataTask }, uploads, tasks.compactMap { $0 as? URLSessionDownloadTask })
    }

    /// All tasks that are not over.
    public var allTasks: [URLSessionTask] { get async { currentTasks } }

    private var currentTasks: [URLSessionTask] {
        let tasks = members.withLock { $0.tasks }
        return tasks.sorted { $0.key < $1.key }.map(\.value).filter { $0.state != .completed }
    }

    // MARK: Its end

    /// Lets the tasks that were made finish, also those that are still to be resumed, and takes no new ones.
    /// Returns at once; the delegate hears when it is done. Does nothing to ``shared``.
    open func finishTasksAndInvalidate() {
        guard !isShared else { return }
        members.withLock { $0.isInvalid = true }
        core.finishTasksAndInvalidate()
        settle()
    }

    /// Cancels all tasks and takes no new ones. Returns at once; the delegate hears when it is done. Does
    /// nothing to ``shared``.
    open func invalidateAndCancel() {
        guard !isShared else { return }
        let tasks = members.withLock { members in
            members.isInvalid = true
            return members.tasks.values.map(\.bridge)
        }
        for bridge in tasks { bridge?.cancel() }
        core.invalidateAndCancel()
        settle()
    }

    /// A task has made its last call.
    final func left(_ identifier: Int) {
        let isInvalid = members.withLock { members in
            members.tasks[identifier] = nil
            return members.isInvalid
        }
        if isInvalid { settle() }
    }

    /// The delegate's last call comes after that of every task.
    private func settle() {
        let isEmptied = members.withLock { members in
            guard members.isInvalid, members.tasks.isEmpty, !members.isEmptied else { return false }
            members.isEmptied = true
            return true
        }
        guard isEmptied else { return }
        lane.append(.call { [self] in
            delegate?.urlSession(self, didBecomeInvalidWithError: nil)
            let delegates = members.withLock { members in
                defer { members.delegates = Delegates(nil) }
                return members.delegates
            }
            withExtendedLifetime(delegates) {}  // Its end may run code of the program's: not under the lock.
        })
    }
}

extension LoadError {
    fileprivate static func tooLate(_ request: URLRequest) -> LoadError {
        LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: request.url)
    }
}
