public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// One load of a ``URLSession``. Made suspended; ``resume()`` begins it.
///
/// All of it may be used from any thread.
open class URLSessionTask: NSObject, NSCopying, @unchecked Sendable {
    /// Where a task stands.
    public enum State: Int, Sendable {
        case running = 0
        /// Not begun, or held up.
        case suspended = 1
        /// Cancelled; the last call is on its way to the delegate.
        case canceling = 2
        case completed = 3
    }

    private struct Own: Sendable {
        var description: String?
        var priority = URLSessionTask.defaultPriority
        var delegate: (any URLSessionTaskDelegate)?
        var isOver = false
        /// Tasks are made with one.
        var suspensions = 1
        var earliestBegin: Date?
        var expectsToReceive = NSURLSessionTransferSizeUnknown
        var expectsToSend = NSURLSessionTransferSizeUnknown
        var progress: Foundation.Progress?
    }
    private let own = Lock(Own())
    private let made: TaskBridge?
    private let isReplaced = Atomic<Bool>(false)
    /// `nil` for a task without a session, and for one that has become another.
    final var bridge: TaskBridge? { isReplaced.load(ordering: .acquiring) ? nil : made }

    /// For stand-ins in tests, which override what they need: a task that belongs to no session and does
    /// nothing.
    public override init() { made = nil }

    init(_ bridge: TaskBridge) { made = bridge }

    /// The same load, as a task of another kind, to which this one gives way.
    init(inPlaceOf task: URLSessionTask, _ bridge: TaskBridge) {
        made = bridge
        let old = task.own.withLock { $0 }
        super.init()
        own.withLock { $0 = old }
        if let progress = old.progress { connect(progress) }
    }

    /// It is over: another goes on with its load.
    final func giveWay() {
        isReplaced.store(true, ordering: .releasing)
        forgetDelegate()
    }

    /// The same object.
    open override func copy() -> Any { self }
    /// The same object.
    open func copy(with zone: NSZone?) -> Any { self }

    // MARK: What it is

    /// Unique in its session.
    open var taskIdentifier: Int { made?.identifier ?? 0 }
    /// What was asked for; `nil` for streams.
    open var originalRequest: URLRequest? { made?.kind == .stream ? nil : made?.original }
    /// What is loaded: after redirects, the last request.
    open var currentRequest: URLRequest? { made?.kind == .stream ? nil : made?.state.withLock { $0.current } }
    /// For the program's own use.
    open var taskDescription: String? {
        get { own.withLock { $0.description } }
        set { own.withLock { $0.description = newValue } }
    }

    /// Hears of this task in the place of the session's delegate, which hears what this one does not
    /// implement. Held until the task is over. To be set before ``resume()``.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { ownDelegate }
        set {
            let old = own.withLock { own in
                guard !own.isOver else { return own.delegate }
                defer { own.delegate = newValue }
                return own.delegate
            }
            withExtendedLifetime(old) {}  // Its end may run code of the program's: not under the lock.
        }
    }

    /// More suspensions than resumptions.
    final var isHeldUp: Bool { own.withLock { $0.suspensions > 0 } }

    final var ownDelegate: (any URLSessionTaskDelegate)? { own.withLock { $0.delegate } }

    final func forgetDelegate() {
        let delegate = own.withLock { own in
            own.isOver = true
            return own.delegate.take()
        }
        withExtendedLifetime(delegate) {}
    }

    // MARK: Controls

    /// Takes one ``suspend()`` back; with the last, the load begins or goes on. A task is made with one. Does nothing to
    /// a task that is running or over.
    open func resume() {
        let start = own.withLock { own -> (Float, Date?)? in
            guard own.suspensions > 0 else { return nil }
            own.suspensions -= 1
            return own.suspensions == 0 ? (own.priority, own.earliestBegin) : nil
        }
        if let (priority, date) = start { bridge?.resume(priority, notBefore: date) }
    }

    /// Holds the load up: no byte is read or written until every one of these was taken back by a ``resume()``.
    open func suspend() {
        let isFirst = own.withLock { own in
            own.suspensions += 1
            return own.suspensions == 1
        }
        if isFirst { bridge?.suspend() }
    }

    /// Ends the load with `URLError.cancelled`, resumed or not. What the delegate has not heard by now it does
    /// not hear any more, but that the task is over. Returns at once.
    open func cancel() { bridge?.cancel() }

    /// How important the task is, from 0 to 1: a hint, taken when it is resumed first. Over HTTP/2 the server hears of
    /// changes.
    open var priority: Float {
        get { own.withLock { $0.priority } }
        set {
            own.withLock { $0.priority = newValue }
            bridge?.prioritize(newValue)
        }
    }
    public static let defaultPriority: Float = 0.5
    public static let lowPriority: Float = 0.25
    public static let highPriority: Float = 0.75

    /// The task does not begin before, whenever it is resumed; `nil` for no such wish. To be set before ``resume()``. When
    /// the time has come the delegate is asked what to send (`willBeginDelayedRequest`).
    open var earliestBeginDate: Date? {
        get { own.withLock { $0.earliestBegin } }
        set { own.withLock { $0.earliestBegin = newValue } }
    }

    /// How many bytes the program thinks will come, if the server does not say: for ``progress``. -1 if nobody knows.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { own.withLock { $0.expectsToReceive } }
        set { own.withLock { $0.expectsToReceive = newValue } }
    }

    /// How many bytes the program thinks it will send, if it is a stream that does not say: for ``progress``. -1 if nobody
    /// knows.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { own.withLock { $0.expectsToSend } }
        set { own.withLock { $0.expectsToSend = newValue } }
    }

    /// Counts the bytes of both bodies, in the whole only if the length of both is known or expected. Cancelling it cancels
    /// the task; pausing it suspends, resuming it resumes the task.
    ///
    /// ```swift
    /// let all = Progress(totalUnitCount: 2)
    /// for task in [first, second] { all.addChild(task.progress, withPendingUnitCount: 1) }
    /// ```
    open var progress: Foundation.Progress {
        let (progress, isNew) = own.withLock { own -> (Foundation.Progress, Bool) in
            if let progress = own.progress { return (progress, false) }
            let made = Foundation.Progress(parent: nil, userInfo: nil)
            own.progress = made
            return (made, true)
        }
        if isNew { connect(progress) }
        return progress
    }

    final var knownProgress: Foundation.Progress? { own.withLock { $0.progress } }

    // MARK: How it stands

    open var state: State { bridge?.taskState ?? (isReplaced.load(ordering: .acquiring) ? .completed : .suspended) }
    /// The response, as soon as it is known.
    open var response: URLResponse? { made?.state.withLock { $0.response } }
    /// Why it failed, a `URLError`; `nil` before its end, and if nothing went wrong.
    open var error: (any Error)? { bridge?.error }
    /// Bytes of the response's body received, decoded.
    open var countOfBytesReceived: Int64 { bridge?.snapshot?.received ?? 0 }
    /// Bytes of the request's body handed to the system.
    open var countOfBytesSent: Int64 { bridge?.snapshot?.sent ?? 0 }
    /// The length of the request's body; 0 if it has none, -1 if nobody knows.
    open var countOfBytesExpectedToSend: Int64 { bridge?.snapshot.map { $0.expectedToSend ?? -1 } ?? 0 }
    /// The length of the response's body; -1 if nobody knows, 0 before there is a response.
    open var countOfBytesExpectedToReceive: Int64 {
        guard response != nil else { return 0 }
        return bridge?.snapshot?.expectedToReceive ?? -1
    }
}

/// A task that loads a body into memory, whole or in pieces.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}

/// A task that sends a body and loads the answer into memory.
///
/// Over http it says that it can be resumed (draft-ietf-httpbis-resumable-upload-12), and is, where the server can: with
/// what ``cancel(byProducingResumeData:)`` gives, or what the error of one that failed has in its `userInfo`
/// (``NSURLSessionUploadTaskResumeData``). Other servers take it as any other request.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    /// Ends the upload, and gives what is needed to go on with it later: to
    /// ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// Bytes that were given to the task are in it, files by their place. Of the request it has method and URL, and no
    /// field that could be a secret.
    /// - Parameter completionHandler: called once, on any thread, before the delegate hears that the task is over; with `nil`
    ///   if the upload is over, or its server has not said that it can go on with it.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        guard let bridge else { return completionHandler(nil) }
        bridge.cancelUpload(completionHandler)
    }

    /// The same, awaited.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in cancel { continuation.resume(returning: $0) } }
    }
}

/// A task that loads a body into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    /// Ends the download, and gives what is needed to go on with it later: to
    /// ``URLSession/downloadTask(withResumeData:)``.
    /// - Parameter completionHandler: called once, on any thread, before the delegate hears that the task is over; with `nil`
    ///   if the download is over, or its server cannot go on with it.
    open func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
        guard let bridge else { return completionHandler(nil) }
        nonisolated(unsafe) let completionHandler = completionHandler
        bridge.cancel { completionHandler($0) }
    }

    /// The same, awaited.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in cancel { continuation.resume(returning: $0) } }
    }
}

/// The length nobody knows.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

extension URLSessionTask: ProgressReporting {}

extension TaskBridge {
    var snapshot: LoadSnapshot? { state.withLock { $0.snapshot } }

    var taskState: URLSessionTask.State {
        let (isOver, isCanceled) = state.withLock { ($0.mailbox.isOver, $0.isCanceled) }
        if isOver { return .completed }
        if isCanceled { return .canceling }
        if isWaitingToBegin { return .running }
        return switch snapshot?.state {
        case .suspended?, nil: .suspended
        case .canceling?: .canceling
        // The load is over, but its delegate has not heard so.
        case .running?, .completed?: .running
        }
    }
}
