// SPDX-License-Identifier: Apache-2.0

import Synchronization
package import URLLoadingIO

/// Reports the network connectivity of this machine, and its changes.
///
/// ```swift
/// if NetworkMonitor.shared.current.isSatisfied { refresh() }
/// for await path in NetworkMonitor.shared.paths {
///     label.text = path.isSatisfied ? "online" : "offline"
/// }
/// ```
/// The monitor asks the kernel and sends no packets. Without observers it has no socket and does no work.
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

    /// The current path, queried from the kernel in a fraction of a millisecond. Never waits for the network.
    public var current: NetworkPath {
        do throws(IOFailure) { return path(try PathMonitor.read(source), hints) } catch { return unknown }
    }

    /// The current path first, then each path that differs from the previous one. Each call returns an independent
    /// sequence.
    ///
    /// A slow observer gets the newest path and misses the ones before it. The sequence ends when the iterating task is
    /// cancelled, and after a path of ``NetworkPath/Status/unknown``, where the system forbids the query.
    public var paths: NetworkPaths { NetworkPaths(monitor: self) }

    // MARK: Hints

    /// Facts about the network that the program knows and the kernel does not: that it is metered, or that the user
    /// wants little traffic.
    public struct Hints: Sendable, Hashable {
        /// Whether the network is metered; `nil`, the default, decides by the interfaces.
        public var isExpensive: Bool?
        /// Whether the user wants little traffic; `false` by default.
        public var isConstrained = false

        /// Creates hints; by default they change nothing.
        public init(isExpensive: Bool? = nil, isConstrained: Bool = false) {
            self.isExpensive = isExpensive
            self.isConstrained = isConstrained
        }
    }

    /// The hints that become part of every path from now on; changing them changes the path. The shared monitor's
    /// hints affect every session of the process.
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

    func addListener(_ token: StopToken) { state.withLock { $0.listeners[ObjectIdentifier(token)] = token } }
    func removeListener(_ token: StopToken) { state.withLock { $0.listeners[ObjectIdentifier(token)] = nil } }
}
