// The session of the classic shape: what it is made of, and what subclasses may override, which extensions cannot have.
// How tasks are made is in `+Making`, `+Transfers` and `+Sockets`, who is in it in `+Members`. Loading is the core's.

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
    let core: Session
    let lane: DelegateLane
    final let settings: URLSessionConfiguration
    /// Of the settings, which nobody can change any more.
    final let values: URLSessionConfiguration.Values
    final let isShared: Bool
    final let members: Lock<Members>

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
        lane = DelegateLane(Self.makeQueue(), isOfProgram: false)
        members = Lock(Members(delegates: Delegates(nil)))
    }

    /// - Parameters:
    ///   - configuration: copied; later changes do not reach the session.
    ///   - delegate: held until the session has been invalidated and has told it so.
    ///   - queue: where the delegate and all completion handlers are called. For a queue that runs several
    ///     operations at a time only the calls of one task come in order, one at a time. No call overtakes what the
    ///     program put on a serial queue, or on the dispatch queue beneath it, before the call was due. `nil` for a
    ///     serial queue of the session's own, where calls may be made before operations that the program adds.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        settings = configuration.ownCopy
        values = settings.values
        core = Session(Configuration(values), decisions: delegate == nil ? nil : Self.decisions)
        isShared = false
        lane = DelegateLane(queue ?? Self.makeQueue(), isOfProgram: queue != nil)
        members = Lock(Members(delegates: Delegates(delegate)))
    }

    private init(shared core: Session) {
        settings = .default
        values = settings.values
        self.core = core
        isShared = true
        lane = DelegateLane(Self.makeQueue(), isOfProgram: false)
        members = Lock(Members(delegates: Delegates(nil)))
    }

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
    final var ownCache: URLCache? {
        isShared && core === Session.shared ? nil : values.cache.flatMap { $0.isPlain ? nil : $0 }
    }

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
        makeUpload(request, .provided, nil)
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

    /// A suspended task that goes on with an upload that was cancelled or failed, from what the server has. It needs to
    /// support the IETF's resumable uploads; a file must still be there, and as it was. Whose body is a stream is asked
    /// for the rest of it (`needNewBodyStreamFrom`).
    /// - Parameter resumeData: of ``URLSessionUploadTask/cancel(byProducingResumeData:)``, or of an error
    ///   (``NSURLSessionUploadTaskResumeData``). One that makes no sense fails the task with `URLError.cannotOpenFile` when
    ///   it is resumed, an upload the server has forgotten with `URLError.resourceUnavailable`.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask { makeResumedUpload(resumeData, nil) }

    /// The same, the result given to a closure, once, on the ``delegateQueue``.
    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeResumedUpload(resumeData, .data(completionHandler)) }

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
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
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

    /// Gives all tasks that are not over to a closure, on the ``delegateQueue``.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = currentTasks
        lane.append(.call { completionHandler(tasks) })
    }

    /// Gives the tasks that are not over to a closure, on the ``delegateQueue``, by kind.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = Self.byKind(currentTasks)
        lane.append(.call { completionHandler(tasks.0, tasks.1, tasks.2) })
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
}
