import URLLoadingIO

/// Loads URLs: holds the connections and settings that its loads share.
///
/// A session performs no I/O of its own: each load runs in the task that asks for it. All verbs may be
/// called from any task at the same time.
///
/// ```swift
/// let session = Session()
/// let (data, response) = try await session.data(from: URL(string: "https://example.org/")!)
/// ```
///
/// A session that nobody holds any more lets its loads finish and closes its connections;
/// ``withSession(_:decisions:_:)`` does the same at the end of a scope and waits for it.
public actor Session {
    /// One session for everybody, with the default configuration. It cannot be invalidated.
    public static let shared = Session(isShared: true)

    nonisolated let core: Core

    /// The settings this session was made with.
    public nonisolated var configuration: Configuration { core.configuration }

    /// - Parameters:
    ///   - configuration: a value; later changes to it have no effect here.
    ///   - decisions: asked for every load that brings no decision of its own.
    public init(_ configuration: Configuration = .default, decisions: Decisions? = nil) {
        core = Core(configuration, decisions, isShared: false, Self.parts(of:))
    }

    private init(isShared: Bool) {
        core = Core(.default, nil, isShared: isShared, Self.parts(of:))
    }

    private static func parts(of configuration: Configuration) -> Core.Parts {
        let observers = configuration.observers
        return Core.Parts(
            handlers: HandlerLine(
                own: configuration.handlers,
                builtIn: [FileHandler(), DataHandler(), FTPHandler(), HTTPHandler()])
        ) { request, isHeard in
            EventEmitter.make(request, observers, isHeard: isHeard)
        }
    }

    deinit { core.finishTasksAndInvalidate() }

    /// Lets the loads that are going on finish, takes no new ones
    /// (``LoadError/Reason/sessionInvalidated``), then closes all connections. Returns at once.
    public nonisolated func finishTasksAndInvalidate() { core.finishTasksAndInvalidate() }

    /// Ends every load with ``LoadError/Reason/cancelled``, takes no new ones, closes all connections.
    /// Returns at once; ``invalidated()`` waits.
    public nonisolated func invalidateAndCancel() { core.invalidateAndCancel() }

    /// Returns when the session has been invalidated and its last connection is closed; for
    /// ``shared``, which cannot be invalidated, at once. Cancelling the calling task does not shorten
    /// the wait: cancel the loads.
    public func invalidated() async {
        guard !core.isShared else { return }
        await core.registry.emptied()
    }

    /// How many of the caller's closures (decisions, body sequences, handlers) still run although their
    /// load has ended without them. More than a passing few: a closure ignores its cancellation.
    public nonisolated var leakedClosures: Int { core.leaked.value }

    /// One line about the connections, such as `https://example.org 0 connecting 1 leased 2 idle 0 waiting`,
    /// or `empty`.
    public nonisolated var connectionsDescription: String { core.pool.description }

    /// Who knows the ways to others.
    package nonisolated var networkMonitor: NetworkMonitor { core.configuration.networkMonitor }
}

/// Makes a session for the length of a scope. At its end the session is invalidated and its last
/// connection closed before this returns: loads still going on are finished if the scope returned,
/// cancelled if it threw.
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

/// The loop that waits for the kernel, as an executor. Tasks that prefer it run on its one thread and
/// are resumed without a change of threads: the least CPU per request for programs that mostly load.
/// Enter it once for a tree of tasks, not for each request, and do not compute for long on it.
///
/// ```swift
/// await withTaskExecutorPreference(eventLoopExecutor) {
///     await crawl(session)
/// }
/// ```
public var eventLoopExecutor: any TaskExecutor { Poller.shared }
