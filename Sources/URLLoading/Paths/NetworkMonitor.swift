import Synchronization
package import URLLoadingIO

/// Tells how this machine is connected to others, and when that changes.
///
/// ```swift
/// if NetworkMonitor.shared.current.isSatisfied { refresh() }
/// for await path in NetworkMonitor.shared.paths {
///     label.text = path.isSatisfied ? "online" : "offline"
/// }
/// ```
/// It asks the kernel and sends nothing to anybody. While nobody listens it has no socket and does no work.
public final class NetworkMonitor: Sendable {
    /// The networks of this process.
    public static let shared = NetworkMonitor()

    let source: any PathSource
    private let kind: @Sendable (PathLink) -> LinkKind
    private let state = Lock(State())

    private struct State: Sendable {
        var hints = Hints()
        var listeners: [ObjectIdentifier: StopToken] = [:]
    }

    package init(
        _ source: any PathSource = SystemPaths(), kind: @escaping @Sendable (PathLink) -> LinkKind = LinkKind.of
    ) {
        self.source = source
        self.kind = kind
    }

    /// The path at this moment, asked of the kernel anew, which takes a fraction of a millisecond. Never waits for the network.
    public var current: NetworkPath {
        do throws(IOFailure) { return path(try PathMonitor.look(source), hints) } catch { return unknown }
    }

    /// The current path first, then each that differs from the one before. Each call is a sequence of its own.
    ///
    /// Who is slow misses what came in between, and gets the newest. Ends when the task that iterates is cancelled; or,
    /// after a path of ``NetworkPath/Status/unknown``, where the system lets nobody ask.
    public var paths: NetworkPaths { NetworkPaths(monitor: self) }

    // MARK: Hints

    /// What the program knows of its network and the kernel does not: that it is metered, or that its user wants
    /// little traffic.
    public struct Hints: Sendable, Hashable {
        /// Whether use of the network costs by volume; `nil` judges by the interfaces.
        public var isExpensive: Bool?
        /// Whether the user wants little traffic.
        public var isConstrained = false

        public init(isExpensive: Bool? = nil, isConstrained: Bool = false) {
            self.isExpensive = isExpensive
            self.isConstrained = isConstrained
        }
    }

    /// Part of every path from now on; a change is a change of the path. In the shared monitor it concerns every
    /// session of the process.
    public var hints: Hints {
        get { state.withLock { $0.hints } }
        set {
            let listeners = state.withLock { state in
                defer { state.hints = newValue }
                return state.hints == newValue ? [] : Array(state.listeners.values)
            }
            for listener in listeners { listener.wake() }
        }
    }

    // MARK: Inside

    func path(_ state: PathState, _ hints: Hints) -> NetworkPath { NetworkPath(state, hints, kind: kind) }

    var unknown: NetworkPath {
        let hints = hints
        return NetworkPath(.unknown, isExpensive: hints.isExpensive, isConstrained: hints.isConstrained)
    }

    func listens(_ token: StopToken) { state.withLock { $0.listeners[ObjectIdentifier(token)] = token } }
    func leaves(_ token: StopToken) { state.withLock { $0.listeners[ObjectIdentifier(token)] = nil } }
}
