// SPDX-License-Identifier: Apache-2.0

// In this folder: the sessions, tasks and delegates of the classic API (27 files: they name each other)

// The session of the classic API: its parts and the members that subclasses may override, which extensions cannot
// contain. Tasks are created in `+Making`, `+Transfers` and `+Sockets`; members are tracked in `+Members`. The core
// does the loading.

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
/// All members may be used from any thread. A session without references, whose tasks are over, closes its connections
/// and releases its delegate; a session that was invalidated notifies its delegate first.
open class URLSession: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    let core: Session
    let lane: DelegateLane
    final let settings: URLSessionConfiguration
    /// The settings, immutable after the creation of the session.
    final let values: URLSessionConfiguration.Values
    final let isShared: Bool
    final let members: Lock<Members>

    /// It has the stores of the core's shared session, but not its connections: what a connection waits for runs on the
    /// event loop for classic loads, and in Swift's pool, which the program may block, for others.
    private static let sharedSession = URLSession(
        shared: Session(Configuration(URLSessionConfiguration.default.values)))

    /// The shared session, with the default configuration and no delegate. It cannot be invalidated.
    open class var shared: URLSession { sharedSession }

    /// Creates a session without a delegate, for tasks with completion handlers.
    /// - Parameter configuration: copied; later changes do not affect the session.
    public init(configuration: URLSessionConfiguration) {
        settings = configuration.ownCopy
        values = settings.values
        core = Session(Configuration(values))
        isShared = false
        lane = DelegateLane(Self.makeQueue(), isOfProgram: false)
        members = Lock(Members(delegates: Delegates(nil)))
    }

    /// Creates a session that calls a delegate.
    /// - Parameters:
    ///   - configuration: copied; later changes do not affect the session.
    ///   - delegate: retained until it was notified of the session's invalidation.
    ///   - queue: the queue on which the delegate and all completion handlers are called. On a queue that runs several
    ///     operations at a time, only the calls of one task are in order and never overlap. No call overtakes an
    ///     operation that the program added to a serial queue, or to the dispatch queue beneath it, before the call was
    ///     due. `nil` creates a serial queue of the session's own, where calls may precede operations that the program
    ///     adds.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        settings = configuration.ownCopy
        values = settings.values
        let adopts = values.isBackground && delegate != nil
        var configuration = Configuration(values)
        configuration.background?.adopts = adopts
        // Each task of a background session has the challenge decision itself.
        core = Session(configuration, decisions: delegate == nil || values.isBackground ? nil : Self.decisions)
        isShared = false
        lane = DelegateLane(queue ?? Self.makeQueue(), isOfProgram: queue != nil)
        members = Lock(
            Members(
                delegates: Delegates(delegate), lastIdentifier: values.isBackground ? Self.firstIdentifier() : 0,
                adoption: adopts ? [] : nil))
        super.init()
        if adopts { adoptTransfers() }
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

    // MARK: Configuration and delegate

    /// The queue on which the delegate and all completion handlers are called.
    open var delegateQueue: OperationQueue { lane.queue }
    /// The delegate; `nil` after it was notified of the session's invalidation.
    open var delegate: (any URLSessionDelegate)? { delegates.session }
    /// A copy of the configuration; changing it does not affect the session.
    open var configuration: URLSessionConfiguration { settings.ownCopy }
    /// A label for the program's own use.
    open var sessionDescription: String? {
        get { members.withLock { $0.description } }
        set { members.withLock { $0.description = newValue } }
    }

    /// The session's cache if it is a subclass, whose methods must be called.
    final var ownCache: URLCache? { values.cache.flatMap { $0.isPlain ? nil : $0 } }

    final var delegates: Delegates { members.withLock { $0.delegates } }

    // MARK: Stored data

    /// Removes all cookies, stored responses and credentials from the session's storages, which other sessions may
    /// share, and closes idle connections. Running tasks are not affected.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        Self.keeping.async { [self] in
            forget()
            lane.append(.call(completionHandler))
        }
    }

    /// Writes unsaved changes of the session's storages to their files, and closes idle connections.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        Task.onLoop { [self] in
            await writeOut()
            lane.append(.call(completionHandler))
        }
    }

    // MARK: Tasks

    /// Creates a suspended task that notifies the delegate of its response and body. Without a delegate the request is
    /// sent and the response is dropped.
    ///
    /// A task of an invalidated session fails with `URLError.cancelled` when it is resumed.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, nil) }

    /// Creates a suspended task that loads a URL with GET; see ``dataTask(with:)-(URLRequest)``.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), nil) }

    /// Creates a suspended task that passes its result to a closure. The delegate does not receive its response and
    /// body, but is asked about redirects and challenges.
    /// - Parameter completionHandler: called exactly once, on the ``delegateQueue``, with the whole body
    ///   and the response; or with a `URLError`, and the response if there was one.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeDataTask(request, .data(completionHandler)) }

    /// Creates a suspended task that loads a URL with GET and passes its result to a closure.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), .data(completionHandler)) }

    // MARK: Uploads

    /// Creates a suspended task that uploads a file without loading it into memory. The request's own body is ignored.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUpload(request, .file(fileURL), nil)
    }

    /// Creates a suspended task that uploads data. The request's own body is ignored.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUpload(request, .data(bodyData), nil)
    }

    /// Creates a suspended task that asks its delegate for the stream to send (`needNewBodyStream`).
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUpload(request, .provided, nil)
    }

    /// Creates a suspended task that uploads a file and passes its result to a closure, called once on the
    /// ``delegateQueue``.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeUpload(request, .file(fileURL), .data(completionHandler)) }

    /// Creates a suspended task that uploads data and passes its result to a closure, called once on the
    /// ``delegateQueue``.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeUpload(request, .data(bodyData ?? Data()), .data(completionHandler)) }

    /// Creates a suspended task that resumes a cancelled or failed upload at the offset that the server reports. The
    /// server must support the IETF's resumable uploads; a file must still exist unchanged. For a body from a stream,
    /// the delegate is asked for the rest of it (`needNewBodyStreamFrom`).
    /// - Parameter resumeData: the result of ``URLSessionUploadTask/cancel(byProducingResumeData:)``, or from an error
    ///   (``NSURLSessionUploadTaskResumeData``). With invalid data the task fails with `URLError.cannotOpenFile` when
    ///   it is resumed; an upload unknown to the server fails with `URLError.resourceUnavailable`.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask { makeResumedUpload(resumeData, nil) }

    /// Creates a suspended task that resumes an upload and passes its result to a closure, called once on the
    /// ``delegateQueue``.
    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { makeResumedUpload(resumeData, .data(completionHandler)) }

    // MARK: Downloads

    /// Creates a suspended task that loads into a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownload(request, nil) }

    /// Creates a suspended task that loads a URL into a file, with GET.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { makeDownload(URLRequest(url: url), nil) }

    /// Creates a suspended task that resumes a cancelled or failed download. With invalid data the task fails with
    /// `URLError.cannotOpenFile` when it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask { makeResumed(resumeData, nil) }

    /// Creates a suspended task that loads into a file and passes its location to a closure.
    /// - Parameter completionHandler: called once, on the ``delegateQueue``. The file is removed when the closure
    ///   returns, unless it was moved.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeDownload(request, .file(completionHandler)) }

    /// Creates a suspended task that loads a URL into a file, with GET, and passes its location to a closure.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeDownload(URLRequest(url: url), .file(completionHandler)) }

    /// Creates a suspended task that resumes a download and passes its location to a closure.
    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { makeResumed(resumeData, .file(completionHandler)) }

    // MARK: Conversations

    /// Creates a suspended task that opens a WebSocket, with a `ws` or `wss` URL.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { makeSocket(URLRequest(url: url), []) }

    /// Creates a suspended task that opens a WebSocket and offers subprotocols, in order of preference.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        makeSocket(URLRequest(url: url), protocols)
    }

    /// Creates a suspended task that opens a WebSocket with a request: its fields are sent in the handshake, and its
    /// timeout applies until the handshake is complete. Subprotocols are taken from its field Sec-WebSocket-Protocol.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        let offered = request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") ?? ""
        let names = offered.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        return makeSocket(request, names.filter { !$0.isEmpty })
    }

    /// Creates a suspended task that connects to a TCP port. With an invalid host, or a port outside of 1 to 65535, the
    /// task fails when it is resumed.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        makeStream(hostname, port)
    }

    /// Passes all tasks that are neither over nor cancelled to a closure, on the ``delegateQueue``. A background
    /// session answers when it has the tasks of earlier programs.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        whenAdopted { [self] in
            let tasks = currentTasks
            lane.append(.call { completionHandler(tasks) })
        }
    }

    /// Passes the tasks that are neither over nor cancelled to a closure, by kind, on the ``delegateQueue``; see
    /// ``getAllTasks(completionHandler:)``.
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        whenAdopted { [self] in
            let tasks = Self.byKind(currentTasks)
            lane.append(.call { completionHandler(tasks.0, tasks.1, tasks.2) })
        }
    }

    // MARK: End

    /// Invalidates the session after its existing tasks have ended, including those that are still suspended; new tasks
    /// fail. Returns at once; the delegate is notified of the invalidation. Has no effect on ``shared``.
    open func finishTasksAndInvalidate() {
        guard !isShared else { return }
        members.withLock { $0.isInvalid = true }
        core.finishTasksAndInvalidate()
        settle()
    }

    /// Cancels all tasks and invalidates the session; new tasks fail. Returns at once; the delegate is notified of the
    /// invalidation. Has no effect on ``shared``.
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
