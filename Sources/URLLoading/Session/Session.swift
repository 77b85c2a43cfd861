// SPDX-License-Identifier: Apache-2.0

// In this folder: the session and its public methods (16 files: a file for each kind of load)

import URLLoadingIO

/// Loads URLs. A session holds the connections and settings that its loads share.
///
/// A session performs no I/O of its own: each load runs in the task that calls it. All methods may be called from any
/// task at the same time.
///
/// ```swift
/// let session = Session()
/// let (data, response) = try await session.data(from: URL(string: "https://example.org/")!)
/// ```
///
/// When the last reference to a session is released, its loads finish and its connections are closed;
/// ``withSession(_:decisions:_:)`` does the same at the end of a closure and waits for it.
public actor Session {
    /// The session shared by the whole program, with the default configuration. It cannot be invalidated.
    public static let shared = Session(isShared: true)

    nonisolated let core: Core
    /// The connection to the background agent; nil if the loads run in this process.
    nonisolated let agent: BackgroundConnection?
    nonisolated let live = LiveStatistics()

    /// The settings of this session.
    public nonisolated var configuration: Configuration { core.configuration }
    /// ``Configuration/Limits/collectedBodySize``, without a copy of the configuration.
    package nonisolated var collectedBodySize: Int { core.configuration.limits.collectedBodySize }

    /// Creates a session.
    /// - Parameters:
    ///   - configuration: a value; later changes to it have no effect on the session.
    ///   - decisions: called for every load that has no decision of its own.
    public init(_ configuration: Configuration = .default, decisions: Decisions? = nil) {
        core = Core(configuration, decisions, isShared: false) { [live] in Self.parts(of: $0, live) }
        agent = BackgroundConnection.make(core)
    }

    private init(isShared: Bool) {
        core = Core(.default, nil, isShared: isShared) { [live] in Self.parts(of: $0, live) }
        agent = nil
    }

    private static func parts(of configuration: Configuration, _ live: LiveStatistics) -> Core.Parts {
        let observers = configuration.observers
        return Core.Parts(
            handlers: HandlerChain(
                own: configuration.handlers,
                builtIn: [FileHandler(), DataHandler(), FTPHandler(), HTTPHandler()]),
            makeEvents: { request, isObserved in
                EventEmitter.make(request, live.counter.map { observers + [$0] } ?? observers, isObserved: isObserved)
            },
            ended: { live.end() })
    }

    deinit { core.finishTasksAndInvalidate() }

    /// Lets running loads finish, refuses new ones (``LoadError/Reason/sessionInvalidated``), then closes all
    /// connections. Returns at once; ``invalidated()`` waits.
    public nonisolated func finishTasksAndInvalidate() { core.finishTasksAndInvalidate() }

    /// Ends every load with ``LoadError/Reason/cancelled``, refuses new ones, closes all connections. Returns at once;
    /// ``invalidated()`` waits.
    public nonisolated func invalidateAndCancel() { core.invalidateAndCancel() }

    /// Waits until the session has been invalidated and its last connection is closed. For ``shared``, which cannot be
    /// invalidated, it returns at once. Cancelling the calling task does not shorten the wait: cancel the loads.
    public func invalidated() async {
        guard !core.isShared else { return }
        await core.registry.emptied()
    }

    /// The number of the caller's closures (decisions, body sequences, handlers) that still run although their load has
    /// ended. If it stays above zero, a closure ignores its cancellation.
    public nonisolated var leakedClosures: Int { core.leaked.value }

    /// The connections on one line, such as `https://example.org 0 connecting 1 leased 2 idle 0 waiting`, or `empty`.
    public nonisolated var connectionsDescription: String { core.pool.description }

    /// The source of network changes.
    package nonisolated var networkMonitor: NetworkMonitor { core.configuration.networkMonitor }
}

/// Creates a session for the duration of a closure. At its end the session is invalidated and its last connection
/// closed before this returns: running loads finish if the closure returned, and are cancelled if it threw.
///
/// ```swift
/// let pages = try await withSession(.ephemeral) { session in
///     try await session.data(from: url).0
/// }
/// ```
nonisolated(nonsending) public func withSession<R>(
    _ configuration: Configuration = .default, decisions: Decisions? = nil,
    _ use: nonisolated(nonsending) (Session) async throws -> R
) async throws -> R {
    let session = Session(configuration, decisions: decisions)
    do {
        let result = try await use(session)
        session.finishTasksAndInvalidate()
        await session.invalidated()
        return result
    } catch {
        session.invalidateAndCancel()
        await session.invalidated()
        throw error
    }
}

/// The library's event loop as a task executor. Tasks that prefer it run on its one thread and are resumed without a
/// thread switch: the least CPU per request for programs that mostly load, about half of the pool's with a few
/// connections, and a sixth to a quarter less than the pool's with 16 to 64. Set it once for a tree of tasks, not for
/// each request, and do not compute for long on it: it is one thread. The sequence of a streamed request body
/// (``RequestBody/stream(length:trailers:_:)``) is asked there too.
///
/// ```swift
/// await withTaskExecutorPreference(eventLoopExecutor) {
///     await crawl(session)
/// }
/// ```
public var eventLoopExecutor: any TaskExecutor { Poller.shared }
