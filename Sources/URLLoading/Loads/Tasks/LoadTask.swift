// SPDX-License-Identifier: Apache-2.0

// In this folder: tasks: created suspended, driven, read, turned into others

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// A load with a handle: created suspended, and controlled from any thread.
///
/// Get one from ``Session/dataTask(_:decisions:)``. For callers that only wait for the result, functions such as
/// ``Session/data(for:decisions:)`` are simpler: they run the load in the caller's own task.
///
/// ```swift
/// let task = session.dataTask(Request(url: url))
/// task.resume()
/// let response = try await task.response
/// for try await line in try await task.body.lines { print(line) }
/// ```
/// After ``resume()`` the load runs by itself, with the priority and the task-local values of the task that called
/// ``resume()``. It receives the head of the response and at most ``Configuration/readAhead`` bytes of the body. Then
/// it waits for a consumer to take the body as ``body`` or as `value`; until then it reads nothing more from the
/// socket and keeps the connection.
///
/// Waiting for a task does not own it: cancelling the waiting task ends only the wait. The load is ended by
/// ``cancel()``, by its timeouts, by its session, and by the cancellation of the task that iterates ``body``.
///
/// Releasing the last handle also ends the load, whatever its kind and progress: a request that waits for a connection
/// is not sent, an upload is aborted, a partial download is removed. A call of ``response``, `value` or ``body``
/// holds the handle while it waits, and a body holds it while the body is referenced. While ``events`` are read without
/// a handle, the load continues as far as it can: a download with a ``DownloadOptions/destination`` completes, other
/// downloads end at once, and a data task or an upload continues until more of the response has arrived than
/// ``Configuration/readAhead`` allows.
public final class LoadTask<Output: Sendable>: Sendable, Identifiable, CustomStringConvertible {
    let load: TaskDriver
    /// The session. A task that was not resumed yet keeps its session alive through this reference.
    private let owner: (any Sendable)?

    init(_ load: TaskDriver, _ owner: (any Sendable)?) {
        self.load = load
        self.owner = owner
        load.addHandle()
    }

    deinit { load.removeHandle() }

    /// True if this data task became a download, which now owns the load's state.
    private var isOver: Bool { Output.self != DownloadedFile.self && load.state.withLock { $0.hasBecomeDownload } }

    /// The identifier of the load, unique in this process.
    public var id: UInt64 { load.context.emitter?.identity.id ?? 0 }
    /// The request as the task was created with it.
    public var request: Request { load.original }

    // MARK: Controls

    /// Starts or resumes the load. Resuming a running or completed task does nothing.
    public func resume() { if !isOver { load.resume() } }

    /// Replaces the decisions that the task was created with. Call it before the load begins, from the thread that is
    /// about to begin it.
    package func decide(by decisions: Decisions) { load.context.decide(by: decisions) }

    /// Starts or resumes the load. If this call starts it, the load runs with `priority`.
    package func resume(priority: TaskPriority?) { load.resume(priority) }

    /// Changes the urgency of the load. On HTTP/2 it is sent to servers that support PRIORITY_UPDATE (RFC 9218 §7.1);
    /// the load's own Swift task keeps the priority that it was resumed with. Does nothing before ``resume()``.
    ///
    /// ```swift
    /// if image.isVisible { task.prioritize(.high) }
    /// ```
    public func prioritize(_ priority: TaskPriority) { if !isOver { load.prioritize(priority) } }

    /// Suspends the load: no byte of requests and responses is read or written, and the idle and connect timeouts stop;
    /// the resource timeout runs on. A connection attempt under way continues. One ``resume()`` undoes any number of
    /// these calls.
    public func suspend() { if !isOver { load.suspend() } }

    /// Ends the load with ``LoadError/Reason/cancelled``, whether or not it was resumed. A completed task is unchanged.
    /// Returns at once; the load has released its connection when `value` throws or ``events`` ends.
    public func cancel() { if !isOver { load.stop(.cancelled) } }

    /// Waits until the background agent has the task on its disk: from then on the transfer outlives this process.
    /// Returns at once for the task of another session. Waits forever if the task is never resumed.
    /// - Throws: ``LoadError`` if the task failed before; ``LoadError/Reason/cancelled`` also if the calling task is
    ///   cancelled, which does not affect the task.
    public var accepted: Void {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            try await load.background?.accepted()
        }
    }

    /// The identifier of the task's transfer (``BackgroundTransfer/id``); `nil` outside of background sessions.
    public var backgroundIdentifier: String? { load.background?.id }

    // MARK: Results

    /// The state and the byte counts at this moment.
    public var snapshot: LoadSnapshot { LoadSnapshot(load, isOver: isOver) }

    /// The response, as soon as it is known; after redirects, the final one. Waits forever if the task is never
    /// resumed.
    /// - Throws: ``LoadError`` of the load if it failed before it had a response. ``LoadError/Reason/cancelled`` also
    ///   if the calling task is cancelled, which does not affect the load.
    public var response: Response {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            return try await load.response()
        }
    }

    /// The events of the load from now on. Each call returns an independent sequence.
    public var events: LoadEvents { LoadEvents(load.listen(), load) }

    /// The task on one line: `task 7 running 2048/4096 https://example.org/`.
    public var description: String { "task \(id) \(snapshot) \(request.url.withoutSecrets)" }
}

extension LoadTask where Output == Data {
    /// The whole body, once the load is complete. Any number of tasks may await it, at any time. The first access
    /// claims the body: ``body`` has no bytes afterwards.
    /// - Throws: ``LoadError`` of the load; ``LoadError/Reason/bodyTooLarge`` beyond
    ///   ``Configuration/Limits/collectedBodySize``; ``LoadError/Reason/bodyUnavailable`` if the body was taken as a
    ///   sequence; ``LoadError/Reason/cancelled`` also if the calling task is cancelled, which does not affect the
    ///   load.
    public var value: Data {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            return try await load.whole()
        }
    }

    /// The body, for one consumer, as soon as the response is known. Waits forever if the task is never resumed.
    /// - Throws: the errors of ``response``.
    public var body: ResponseBody {
        get async throws(LoadError) {
            _ = try await load.response()
            return ResponseBody(TaskBody(self))
        }
    }
}

/// The body of a task. It holds the task's handle as long as it is referenced.
private final class TaskBody: BodySource {
    private let task: LoadTask<Data>
    private let isClaimed = Atomic<Bool>(false)

    init(_ task: LoadTask<Data>) { self.task = task }

    deinit { if isClaimed.load(ordering: .acquiring) { task.load.readerLeft() } }

    func claim() -> Bool {
        let (isClaimed, isSending) = task.load.state.withLock { ($0.claim(), $0.isSending) }
        if isClaimed { self.isClaimed.store(true, ordering: .releasing) }
        if isSending { task.load.context.handle.wake() }
        return isClaimed
    }
    func next() async throws(LoadError) -> Chunk? { try await task.load.next() }
    var trailers: Headers { task.load.state.withLock { $0.trailers } }
    var limits: Configuration.Limits { task.load.core.configuration.limits }
    var url: URL? { task.load.state.withLock { $0.response?.url } ?? task.request.url }
}

extension LoadSnapshot {
    init(_ load: TaskDriver, isOver: Bool) {
        let isStopped = load.stopReason != nil
        let (counts, outcome, isSuspended, priority) = load.state.withLock {
            ($0.counts, isOver ? .finished : $0.outcome, $0.isSuspended, $0.priority)
        }
        let state: State =
            switch outcome {
            case .finished?: .completed(nil)
            case .failed(let error)?: .completed(error)
            case nil: isStopped ? .canceling : isSuspended ? .suspended : .running
            }
        self.init(state, counts, priority)
    }
}

/// A task whose body is read by its holder: ``Session/dataTask(_:decisions:)``.
public typealias DataTask = LoadTask<Data>
/// A task whose body is written into a file: ``Session/downloadTask(_:options:decisions:)``.
public typealias DownloadTask = LoadTask<DownloadedFile>
