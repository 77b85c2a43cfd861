// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// One load of a ``URLSession``. Created suspended; ``resume()`` begins it.
///
/// All members may be used from any thread.
open class URLSessionTask: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// The state of a task.
    public enum State: Int, Sendable {
        /// The load is under way.
        case running = 0
        /// Not begun, or suspended.
        case suspended = 1
        /// Cancelled; the last call to the delegate is pending.
        case canceling = 2
        /// The task is complete, with or without an error.
        case completed = 3
    }

    private struct Values: Sendable {
        var description: String?
        var priority = URLSessionTask.defaultPriority
        var delegate: (any URLSessionTaskDelegate)?
        var isOver = false
        /// A task is created with one suspension.
        var suspensions = 1
        var earliestBegin: Date?
        var expectsToReceive = NSURLSessionTransferSizeUnknown
        var expectsToSend = NSURLSessionTransferSizeUnknown
        var progress: TaskProgress?
    }
    private let values = Lock(Values())
    private let made: TaskBridge?
    private let isReplaced = Atomic<Bool>(false)
    /// The bridge; `nil` for a task without a session, and for one that was replaced.
    final var bridge: TaskBridge? { isReplaced.load(ordering: .acquiring) ? nil : made }

    /// Creates a task for tests, whose subclass overrides the members it needs. It belongs to no session and does
    /// nothing.
    public override init() { made = nil }

    init(_ bridge: TaskBridge) { made = bridge }

    /// Creates a task of another kind that takes over the load of `task`.
    init(inPlaceOf task: URLSessionTask, _ bridge: TaskBridge) {
        made = bridge
        let old = task.values.withLock { $0 }
        super.init()
        values.withLock { $0 = old }
        if let progress = old.progress { connect(progress) }
    }

    /// Ends this task, because another task has taken over its load.
    final func endReplaced() {
        isReplaced.store(true, ordering: .releasing)
        forgetDelegate()
    }

    /// Returns the same object.
    open override func copy() -> Any { self }
    /// Returns the same object.
    open func copy(with zone: NSZone?) -> Any { self }

    // MARK: Identity

    /// An identifier unique in the session.
    open var taskIdentifier: Int { made?.identifier ?? 0 }
    /// The request with which the task was created; `nil` for streams.
    open var originalRequest: URLRequest? { made?.kind == .stream ? nil : made?.original }
    /// The request being loaded: after redirects, the last one.
    open var currentRequest: URLRequest? { made?.kind == .stream ? nil : made?.state.withLock { $0.current } }
    /// A label for the program's own use.
    open var taskDescription: String? {
        get { values.withLock { $0.description } }
        set { values.withLock { $0.description = newValue } }
    }

    /// The task's own delegate. It is called instead of the session's delegate, which receives the calls that this one
    /// does not implement. Retained until the task is over. Must be set before ``resume()``.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { ownDelegate }
        set {
            let old = values.withLock { values in
                guard !values.isOver else { return values.delegate }
                defer { values.delegate = newValue }
                return values.delegate
            }
            withExtendedLifetime(old) {}  // Its deinit may run code of the program: not under the lock.
        }
    }

    /// Whether there are more suspensions than resumptions.
    final var isSuspended: Bool { values.withLock { $0.suspensions > 0 } }

    final var ownDelegate: (any URLSessionTaskDelegate)? { values.withLock { $0.delegate } }

    final func forgetDelegate() {
        let delegate = values.withLock { values in
            values.isOver = true
            return values.delegate.take()
        }
        withExtendedLifetime(delegate) {}
    }

    // MARK: Controls

    /// Undoes one ``suspend()``; the last one begins or resumes the load. A task is created with one suspension. Has no
    /// effect on a task that is running or over.
    open func resume() {
        let start = values.withLock { values -> (Float, Date?)? in
            guard values.suspensions > 0 else { return nil }
            values.suspensions -= 1
            return values.suspensions == 0 ? (values.priority, values.earliestBegin) : nil
        }
        if let (priority, date) = start { bridge?.resume(priority, notBefore: date) }
    }

    /// Suspends the load: no byte is read or written until every call was undone by a ``resume()``.
    open func suspend() {
        let isFirst = values.withLock { values in
            values.suspensions += 1
            return values.suspensions == 1
        }
        if isFirst { bridge?.suspend() }
    }

    /// Ends the load with `URLError.cancelled`, whether it was resumed or not. Calls to the delegate that are still due
    /// are dropped, except the last one. Returns at once.
    open func cancel() { bridge?.cancel() }

    /// The importance of the task, from 0 to 1: a hint, applied at the first resume. HTTP/2 servers are notified of
    /// changes.
    open var priority: Float {
        get { values.withLock { $0.priority } }
        set {
            values.withLock { $0.priority = newValue }
            bridge?.prioritize(newValue)
        }
    }
    /// The priority of a task that was not given one: 0.5.
    public static let defaultPriority: Float = 0.5
    /// A priority below the default: 0.25.
    public static let lowPriority: Float = 0.25
    /// A priority above the default: 0.75.
    public static let highPriority: Float = 0.75

    /// The earliest date at which the task begins, even if it is resumed before; `nil` for no delay. Must be set before
    /// ``resume()``. At that date the delegate is asked which request to send (`willBeginDelayedRequest`), except for
    /// the tasks of a background session: the program may not run then.
    open var earliestBeginDate: Date? {
        get { values.withLock { $0.earliestBegin } }
        set { values.withLock { $0.earliestBegin = newValue } }
    }

    /// The number of bytes that the program expects to receive, used for ``progress`` if the server does not state it.
    /// -1 if unknown.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { values.withLock { $0.expectsToReceive } }
        set { values.withLock { $0.expectsToReceive = newValue } }
    }

    /// The number of bytes that the program expects to send, used for ``progress`` if the body is a stream of unknown
    /// length. -1 if unknown.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { values.withLock { $0.expectsToSend } }
        set { values.withLock { $0.expectsToSend = newValue } }
    }

    /// Counts the bytes of both bodies; determinate only if both lengths are known or expected, and not exceeded.
    /// Cancelling it cancels the task; pausing suspends and resuming resumes the task.
    ///
    /// ```swift
    /// let all = Progress(totalUnitCount: 2)
    /// for task in [first, second] { all.addChild(task.progress, withPendingUnitCount: 1) }
    /// ```
    open var progress: Foundation.Progress {
        let (progress, isNew) = values.withLock { values -> (TaskProgress, Bool) in
            if let progress = values.progress { return (progress, false) }
            let made = TaskProgress(parent: nil, userInfo: nil)
            values.progress = made
            return (made, true)
        }
        if isNew { connect(progress) }
        return progress
    }

    final var knownProgress: TaskProgress? { values.withLock { $0.progress } }

    // MARK: State and progress

    /// The state of the task; a new task is suspended.
    open var state: State { bridge?.taskState ?? (isReplaced.load(ordering: .acquiring) ? .completed : .suspended) }
    /// The response, as soon as it is known.
    open var response: URLResponse? { made?.state.withLock { $0.response } }
    /// The error of a failed task, a `URLError`; `nil` until the task is over, and after success.
    open var error: (any Error)? { bridge?.error }
    /// The number of decoded bytes of the response's body received.
    open var countOfBytesReceived: Int64 { bridge?.snapshot?.received ?? 0 }
    /// The number of bytes of the request's body passed to the system.
    open var countOfBytesSent: Int64 { bridge?.snapshot?.sent ?? 0 }
    /// The length of the request's body; 0 without a body, -1 if unknown.
    open var countOfBytesExpectedToSend: Int64 { bridge?.snapshot.map { $0.expectedToSend ?? -1 } ?? 0 }
    /// The length of the response's body; -1 if unknown, 0 before the response is received.
    open var countOfBytesExpectedToReceive: Int64 {
        guard response != nil else { return 0 }
        return bridge?.snapshot?.expectedToReceive ?? -1
    }
}

// Unchecked: no open class can be checked; its properties are immutable or under a lock.
/// A task that loads a body into memory, whole or in pieces.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}

/// A task that sends a body and loads the response body into memory.
///
/// Over http it offers resumable uploads (draft-ietf-httpbis-resumable-upload-12). If the server supports them, the
/// upload can be resumed with the result of ``cancel(byProducingResumeData:)``, or with the data in the `userInfo` of
/// its error (``NSURLSessionUploadTaskResumeData``). Other servers handle it as any other request.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// Ends the upload, and returns the data with which ``URLSession/uploadTask(withResumeData:)`` can resume it.
    ///
    /// The data contains the bytes that were passed to the task, or the path of its file. Of the request it contains
    /// the method and the URL, and no field that could be a secret.
    /// - Parameter completionHandler: called once, on any thread, before the delegate is notified of the task's end;
    ///   with `nil` if the upload is over, or its server has not announced support for resumption.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        guard let bridge else { return completionHandler(nil) }
        bridge.cancelUpload(completionHandler)
    }

    /// The async form of `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in cancel { continuation.resume(returning: $0) } }
    }
}

/// A task that loads a body into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// Ends the download, and returns the data with which ``URLSession/downloadTask(withResumeData:)`` can resume it.
    /// - Parameter completionHandler: called once, on any thread, before the delegate is notified of the task's end;
    ///   with `nil` if the download is over, or its server does not support resumption.
    open func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
        guard let bridge else { return completionHandler(nil) }
        nonisolated(unsafe) let completionHandler = completionHandler
        bridge.cancel { completionHandler($0) }
    }

    /// The async form of `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in cancel { continuation.resume(returning: $0) } }
    }
}

/// The value of a length that is unknown.
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
        // The load has ended, but the delegate was not notified yet.
        case .running?, .completed?: .running
        }
    }
}

extension URLSessionTask {
    /// The lane of this task, on which its delegate is called.
    final var lane: DelegateLane? { bridge?.lane }
}
