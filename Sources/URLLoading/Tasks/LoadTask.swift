public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A load that one holds: made at once, suspended, and controlled from any thread.
///
/// Get one from ``Session/dataTask(_:decisions:)``. Verbs such as ``Session/data(for:decisions:)`` are the
/// simpler way for whoever only waits for the result: there the load is the caller's own task.
///
/// ```swift
/// let task = session.dataTask(Request(url: url))
/// task.resume()
/// let response = try await task.response
/// for try await line in try await task.body.lines { print(line) }
/// ```
/// After ``resume()`` the load runs by itself, with the priority and the task-local values of whoever
/// called it, to the head of its answer and at most ``Configuration/readAhead`` bytes further. Then it
/// waits for somebody to take the body: as ``body``, or as ``value``. Nothing more is read from the
/// socket before, and the connection stays with the task.
///
/// Waiting for a task does not own it: cancelling the waiting task ends the waiting. The load is ended by
/// ``cancel()``, by its timeouts, by its session, and by the cancellation of the task that iterates ``body``.
///
/// It is also ended when its last handle is gone, whatever the kind of task and however far it has come: a request
/// that waits for a connection is not sent, an upload breaks off, a partial download is removed. A call of
/// ``response``, ``value`` or ``body`` holds the handle while it waits, and so does a body while there is a reference
/// to it. While ``events`` are read and no handle is left, the load goes on as far as it can without one: a download
/// with a ``DownloadOptions/destination`` to its end, other downloads not at all, a data task or an upload until more
/// of the answer has come than ``Configuration/readAhead`` allows.
public final class LoadTask<Output: Sendable>: Sendable, Identifiable, CustomStringConvertible {
    let load: TaskDriver
    /// Its session: the holder of a task that was not resumed yet keeps it alive.
    private let owner: (any Sendable)?

    init(_ load: TaskDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
        load.addHandle()
    }

    deinit { load.removeHandle() }

    /// What was this task's is another's: it became a download.
    private var isOver: Bool { Output.self != DownloadedFile.self && load.state.withLock { $0.hasBecomeDownload } }

    /// Unique in this process.
    public var id: UInt64 { load.context.emitter?.identity.id ?? 0 }
    /// What was asked for.
    public var request: Request { load.original }

    // MARK: Controls

    /// Begins the load, or lets it go on. Resuming a running or completed task does nothing.
    public func resume() { if !isOver { load.resume() } }

    /// Others decide than those it was made with. Before it begins, by whoever is about to begin it.
    package func decide(by decisions: Decisions) { load.context.decide(by: decisions) }

    /// The same; if the load begins with this, it does so with that priority.
    package func resume(priority: TaskPriority?) { load.resume(priority) }

    /// Makes the load more or less urgent. Over HTTP/2 the server is told, if it understands PRIORITY_UPDATE
    /// (RFC 9218 §7.1); what the load does here keeps the priority it was resumed with. Does nothing before
    /// ``resume()``.
    ///
    /// ```swift
    /// if image.isVisible { task.prioritize(.high) }
    /// ```
    public func prioritize(_ priority: TaskPriority) { if !isOver { load.prioritize(priority) } }

    /// Holds the load up: from now on no byte is read or written, and the idle timeout stands still; the
    /// resource timeout does not. One ``resume()`` undoes any number of these.
    public func suspend() { if !isOver { load.suspend() } }

    /// Ends the load with ``LoadError/Reason/cancelled``, resumed or not. A completed task stays as it is.
    /// Returns at once; the load has let go of its connection when ``value`` or ``events`` end.
    public func cancel() { if !isOver { load.stop(.cancelled) } }

    // MARK: What it gives

    /// State and counts, of one moment.
    public var snapshot: LoadSnapshot { LoadSnapshot(load, isOver: isOver) }

    /// The response, as soon as it is known; after redirects, the last. Waits for ever if nobody resumes
    /// the task.
    /// - Throws: ``LoadError`` of the load if it failed before. ``LoadError/Reason/cancelled`` also if the
    ///   calling task is cancelled, which leaves the load as it is.
    public var response: Response {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            return try await load.response()
        }
    }

    /// What happens to the load from now on. Each call gives a sequence of its own.
    public var events: LoadEvents { LoadEvents(load.listen(), load) }

    /// One line: `task 7 running 2048/4096 https://example.org/`.
    public var description: String { "task \(id) \(snapshot) \(request.url.withoutSecrets)" }
}

extension LoadTask where Output == Data {
    /// The whole result, once the load is complete. May be awaited by any number of tasks, at any time.
    /// Whoever asks takes the body: ``body`` has none then.
    /// - Throws: ``LoadError`` of the load; ``LoadError/Reason/bodyTooLarge`` beyond
    ///   ``Configuration/Limits/collectedBodySize``; ``LoadError/Reason/bodyUnavailable`` if the body was
    ///   taken as a sequence; ``LoadError/Reason/cancelled`` also if the calling task is cancelled, which
    ///   leaves the load as it is.
    public var value: Data {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            return try await load.whole()
        }
    }

    /// The body, for one consumer, as soon as the response is known. Waits for ever if nobody resumes the
    /// task.
    /// - Throws: what ``response`` throws.
    public var body: ResponseBody {
        get async throws(LoadError) {
            _ = try await load.response()
            return ResponseBody(TaskBody(self))
        }
    }
}

/// The body of a handle: as long as somebody has it, the handle is held.
private final class TaskBody: BodySource {
    private let task: LoadTask<Data>

    init(_ task: LoadTask<Data>) { self.task = task }

    func claim() -> Bool {
        let (isOurs, isSending) = task.load.state.withLock { ($0.claim(), $0.isSending) }
        if isSending { task.load.context.handle.wake() }
        return isOurs
    }
    func next() async throws(LoadError) -> Chunk? { try await task.load.next() }
    var trailers: Headers { task.load.state.withLock { $0.trailers } }
    var limits: Configuration.Limits { task.load.core.configuration.limits }
    var url: URL? { task.load.state.withLock { $0.response?.url } ?? task.request.url }
}

/// A ``LoadTask`` at one moment.
public struct LoadSnapshot: Sendable, CustomStringConvertible {
    public enum State: Sendable {
        /// Not begun, or held up.
        case suspended
        case running
        /// A cancellation or a timeout is on its way through it.
        case canceling
        /// Over; `nil` if nothing went wrong.
        case completed(LoadError?)
    }
    public let state: State
    /// Bytes of the request's body handed to the system.
    public let sent: Int64
    /// Bytes of the response's body received, decoded.
    public let received: Int64
    /// The length of the request's body; 0 if it has none, `nil` if nobody knows.
    public let expectedToSend: Int64?
    /// The length of the response's body; `nil` if nobody knows, or not yet.
    public let expectedToReceive: Int64?
    /// The priority of the task that resumed it, or what ``LoadTask/prioritize(_:)`` made of it; `nil` before.
    public let priority: TaskPriority?

    init(_ load: TaskDriver, isOver: Bool) {
        let isStopped = load.stopReason != nil
        self = load.state.withLock { LoadSnapshot($0, isOver: isOver, isStopped: isStopped) }
    }

    private init(_ state: LoadTaskState, isOver: Bool, isStopped: Bool) {
        self.state =
            if isOver { .completed(nil) } else {
                switch state.outcome {
                case .finished?: .completed(nil)
                case .failed(let error)?: .completed(error)
                case nil: isStopped ? .canceling : state.isSuspended ? .suspended : .running
                }
            }
        (sent, received) = (state.counts.sent, state.counts.received)
        (expectedToSend, expectedToReceive) = (state.counts.expectedToSend, state.counts.expectedToReceive)
        priority = state.priority
    }

    public var description: String {
        let word =
            switch state {
            case .suspended: "suspended"
            case .running: "running"
            case .canceling: "canceling"
            case .completed(nil): "completed"
            case .completed(let error?): "failed(\(error.reason))"
            }
        return "\(word) \(received)/\(expectedToReceive.map(String.init) ?? "?")"
    }
}

/// A task whose body is read by its holder: ``Session/dataTask(_:decisions:)``.
public typealias DataTask = LoadTask<Data>
/// A task whose body is written into a file: ``Session/downloadTask(_:options:decisions:)``.
public typealias DownloadTask = LoadTask<DownloadedFile>
