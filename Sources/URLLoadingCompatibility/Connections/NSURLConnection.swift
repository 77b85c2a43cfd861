// SPDX-License-Identifier: Apache-2.0

// In this folder: `NSURLConnection` and `NSURLDownload`

public import Foundation
import Synchronization
import URLLoadingIO

/// One load with a delegate: the API that preceded sessions.
///
/// ```swift
/// let connection = NSURLConnection(request: URLRequest(url: url), delegate: self)
/// ```
/// The delegate is called on the run loop of the thread that created the connection, in the default mode, unless
/// ``schedule(in:forMode:)`` or ``setDelegateQueue(_:)`` say otherwise. It is retained until its last call. Each
/// connection with a delegate has a session of its own, so a server trusted by one delegate is not trusted for another.
open class NSURLConnection: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private struct State: Sendable {
        // The program's delegate, called on its queue or run loop only.
        nonisolated(unsafe) var delegate: (any NSURLConnectionDelegate)?
        var queue: OperationQueue?
        var isStarted = false
        /// Whether the connection has ended or was cancelled: no further calls are made.
        var isOver = false
        var session: URLSession?
        var task: URLSessionTask?
    }
    private let state: Lock<State>
    private let runLoops = RunLoopQueue()
    private let original: URLRequest

    /// Creates a connection for a request.
    /// - Parameters:
    ///   - delegate: an ``NSURLConnectionDataDelegate``, or an ``NSURLConnectionDownloadDelegate``, for which the body
    ///     is loaded into a file.
    ///   - startImmediately: whether the load begins at once; otherwise ``start()`` begins it.
    /// - Returns: `nil` if neither the library nor a registered class can load the request; see ``canHandle(_:)``.
    public init?(request: URLRequest, delegate: Any?, startImmediately: Bool) {
        guard Self.canLoad(request) else { return nil }
        original = request
        state = Lock(State(delegate: delegate as? any NSURLConnectionDelegate))
        super.init()
        if startImmediately { begin() }
    }

    /// Creates a connection and begins its load at once.
    public convenience init?(request: URLRequest, delegate: Any?) {
        self.init(request: request, delegate: delegate, startImmediately: true)
    }

    /// The request with which the connection was created.
    open var originalRequest: URLRequest { original }
    /// The request being loaded: after redirects, the last one.
    open var currentRequest: URLRequest { state.withLock { $0.task }?.currentRequest ?? original }

    // MARK: Controls

    /// Begins a connection that was created with `startImmediately: false`. Has no effect on one that has begun.
    open func start() { begin() }

    /// Ends the connection. No further calls are made to the delegate.
    open func cancel() {
        let (task, delegate, session) = state.withLock { state in
            (state.isOver, state.isStarted) = (true, true)
            return (state.task, state.delegate.take(), state.session.take())
        }
        task?.cancel()
        session?.finishTasksAndInvalidate()
        runLoops.leaveRunLoops()
        withExtendedLifetime(delegate) {}
    }

    /// Adds a run loop on which the delegate may be called. For a connection that has not begun, or that uses run
    /// loops.
    open func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { runLoops.schedule(in: runLoop, mode) }
    /// Removes a run loop from those on which the delegate may be called.
    open func unschedule(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { runLoops.unschedule(from: runLoop, mode) }
    /// Sets the queue on which the delegate is called instead of a run loop. For a connection that has not begun.
    open func setDelegateQueue(_ queue: OperationQueue?) { state.withLock { $0.queue = queue } }

    // MARK: Without a delegate

    /// Returns whether the library or a registered ``URLProtocol`` can load the scheme of a request.
    open class func canHandle(_ request: URLRequest) -> Bool { canLoad(request) }

    private static func canLoad(_ request: URLRequest) -> Bool {
        ["http", "https", "ftp", "ftps", "file", "data"].contains(request.url?.scheme?.lowercased())
            || ProtocolClasses.inOrder.contains { $0.canInit(with: request) }
    }

    private static let simple = URLSession(configuration: .default)

    /// Loads a request and blocks the calling thread until the load ends. Not for the main thread, and not for async
    /// code.
    /// - Parameter response: receives the response.
    /// - Throws: `URLError`. A 4xx or 5xx status is not an error.
    open class func sendSynchronousRequest(
        _ request: URLRequest, returning response: UnsafeMutablePointer<URLResponse?>?
    ) throws -> Data {
        let result = Lock<(Data?, URLResponse?, (any Error)?)>((nil, nil, nil))
        let done = DispatchSemaphore(value: 0)
        let task = simple.dataTask(with: request) { data, response, error in
            result.withLock { $0 = (data, response, error) }
            done.signal()
        }
        task.resume()
        done.wait()
        let (data, known, error) = result.withLock { $0 }
        response?.pointee = known
        guard let data else { throw error ?? URLError.described(.unknown) }
        return data
    }

    /// Loads a request and passes the result to a closure.
    /// - Parameters:
    ///   - queue: the queue on which the handler is called.
    ///   - handler: called once, with response and body, or an error.
    open class func sendAsynchronousRequest(
        _ request: URLRequest, queue: OperationQueue,
        completionHandler handler: @escaping @Sendable (URLResponse?, Data?, (any Error)?) -> Void
    ) {
        simple.dataTask(with: request) { data, response, error in
            queue.addOperation { handler(response, data, error) }
        }.resume()
    }

    // MARK: Beginning

    private func begin() {
        let (isFirst, queue, delegate) = state.withLock { state in
            defer { state.isStarted = true }
            return (!state.isStarted, state.queue, state.delegate)
        }
        guard isFirst else { return }
        if queue == nil, !runLoops.isScheduled { runLoops.schedule(in: .current, .default) }
        let configuration = URLSessionConfiguration.default
        if delegate?.connectionShouldUseCredentialStorage(self) == false { configuration.urlCredentialStorage = nil }
        let adaptor = ConnectionAdaptor(self)
        let session = URLSession(configuration: configuration, delegate: adaptor, delegateQueue: queue ?? runLoops)
        state.withLock { $0.session = session }
        // The delegate is asked on its queue which request to send first.
        session.lane.append(.call { [self] in load(adaptor.first(original), session) })
    }

    private func load(_ request: URLRequest?, _ session: URLSession) {
        guard !state.withLock({ $0.isOver }) else { return }
        guard let request else { return end { $0.connection(self, didFailWithError: URLError.described(.cancelled)) } }
        let isDownload = delegate is any NSURLConnectionDownloadDelegate
        follow(isDownload ? session.downloadTask(with: request) : session.dataTask(with: request))
    }

    /// Begins a task: the first one, or one that resumes a download after a lost connection.
    final func follow(_ task: URLSessionTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() } else { task.resume() }
    }

    /// The delegate; `nil` after the end of the connection.
    final var delegate: (any NSURLConnectionDelegate)? { state.withLock { $0.isOver ? nil : $0.delegate } }

    /// Makes the last call to the delegate.
    final func end(_ call: (any NSURLConnectionDelegate) -> Void) {
        let (delegate, session) = state.withLock { state -> ((any NSURLConnectionDelegate)?, URLSession?) in
            defer { state.isOver = true }
            return (state.isOver ? nil : state.delegate.take(), state.session.take())
        }
        session?.finishTasksAndInvalidate()
        if let delegate { call(delegate) }
    }
}
