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
    }

    /// What is to be done about a challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// The credential beside it is used; `nil` goes on without one.
        case useCredential = 0
        /// As if nobody had been asked.
        case performDefaultHandling = 1
        /// The load ends with `URLError.userCancelledAuthentication`.
        case cancelAuthenticationChallenge = 2
        /// Another of the methods that the server offers is asked for next; if there is none, its response is the result.
        case rejectProtectionSpace = 3
    }

    let core: Session
    let lane: DelegateLane
    private let settings: URLSessionConfiguration
    private let isShared: Bool
    private let members: Lock<Members>

    private struct Members: Sendable {
        var delegates: Delegates
        var description: String?
        var tasks: [Int: URLSessionDataTask] = [:]
        var lastIdentifier = 0
        var isInvalid = false
        var isEmptied = false
    }

    /// The delegate, as what it is: casts are slow.
    struct Delegates: Sendable {
        let session: (any URLSessionDelegate)?
        let task: (any URLSessionTaskDelegate)?
        let data: (any URLSessionDataDelegate)?

        init(_ delegate: (any URLSessionDelegate)?) {
            session = delegate
            task = delegate as? any URLSessionTaskDelegate
            data = delegate as? any URLSessionDataDelegate
        }
    }

    private static let sharedSession = URLSession(shared: .shared)

    /// One session for everybody, with the default configuration and no delegate. It cannot be invalidated.
    open class var shared: URLSession { sharedSession }

    /// A session without a delegate: for tasks with completion handlers.
    /// - Parameter configuration: copied; later changes do not reach the session.
    public init(configuration: URLSessionConfiguration) {
        settings = configuration.ownCopy
        core = Session(Configuration(settings.values))
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
        core = Session(Configuration(settings.values))
        isShared = false
        lane = DelegateLane(queue ?? Self.makeQueue())
        members = Lock(Members(delegates: Delegates(delegate)))
    }

    private init(shared core: Session) {
        settings = .default
        self.core = core
        isShared = true
        lane = DelegateLane(Self.makeQueue())
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

    final var delegates: Delegates { members.withLock { $0.delegates } }

    // MARK: Tasks

    /// A suspended task that tells the delegate of its response and body. Without a delegate the request is
    /// sent and its answer dropped.
    ///
    /// A task of a session that was invalidated fails with `URLError.cancelled` when it is resumed.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeTask(request, nil) }

    /// A suspended task that loads a URL with GET; see ``dataTask(with:)-(URLRequest)``.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeTask(URLRequest(url: url), nil) }

    /// A suspended task that gives its result to a closure. The delegate does not hear of its response and
    /// body, but is asked about redirects.
    /// - Parameter completionHandler: called exactly once, on the ``delegateQueue``, with the whole body
    ///   and the response; or with a `URLError`, and the response if there was one.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeTask(request, completionHandler) }

    /// The same for a URL, loaded with GET.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { makeTask(URLRequest(url: url), completionHandler) }

    private func makeTask(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDataTask {
        let identifier = members.withLock { members in
            members.lastIdentifier += 1
            return members.lastIdentifier
        }
        let bridge = TaskBridge(self, identifier, request, handler)
        let task = URLSessionDataTask(bridge)
        bridge.state.withLock { $0.task = task }
        let isLate = members.withLock { members in
            if !members.isInvalid { members.tasks[identifier] = task }
            return members.isInvalid
        }
        bridge.begin(isLate ? .failure(.tooLate(request)) : Request.make(request, settings.requestCachePolicy).map {
            core.dataTask($0, decisions: bridge.decisions, sink: bridge, holdsSession: true)
        })
        return task
    }

    /// Gives all tasks that are not over to a closure, on the ``delegateQueue``.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = currentTasks
        lane.append(.call { completionHandler(tasks) })
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
