// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension Session {
    /// Opens a Unix socket on which `urlload top` shows this session while it works: the connections, queue and traffic
    /// of each host.
    ///
    /// ```swift
    /// try session.exposeStatistics(at: "/run/user/1000/crawler.top")   // urlload top /run/user/1000/crawler.top
    /// ```
    /// The socket is open until it is closed or the session is invalidated. It belongs to this user alone: its mode is
    /// 0600, and a connection of another user is refused, even of one who may override modes. At most 8 programs are
    /// served at a time. Origins appear, but no paths, fields or bodies. Loads that began before the call are not
    /// counted in the traffic.
    /// - Parameter path: the address of the socket, at most 107 bytes. A socket that no program listens on is replaced.
    /// - Returns: the socket, to close it earlier.
    /// - Throws: ``LoadError/Reason/cannotCreateFile`` for a path that is in use or cannot be created,
    ///   ``LoadError/Reason/sessionInvalidated`` for a session that has ended.
    @discardableResult
    public nonisolated func exposeStatistics(at path: String) throws(LoadError) -> StatisticsSocket {
        try live.expose(at: path, core.configuration.clock) { [weak core = core] in
            guard let core else { return SessionSnapshot(process: ProgramEnvironment.process, moment: 0, loads: 0) }
            return core.snapshot()
        }
    }

    /// Returns what `urlload top` shows as OpenMetrics text, for the route of a server that Prometheus reads.
    ///
    /// ```swift
    /// _ = session.openMetrics()                       // once at the start
    /// router.get("/metrics") { _ in
    ///     Answer(session.openMetrics(), contentType: "application/openmetrics-text; version=1.0.0")
    /// }
    /// ```
    /// Traffic is counted from the first call on, or from an earlier ``exposeStatistics(at:)``. Origins appear, but no
    /// paths, fields or bodies; of more than 200 origins the busiest. Source: OpenMetrics 1.0.
    public nonisolated func openMetrics() -> String { OpenMetricsText(live.counted(core.snapshot())).text }

    /// Returns the OpenMetrics text of several sessions, where each sample names its session: two texts cannot be
    /// joined, because a family of metrics may stand once in a text only.
    ///
    /// ```swift
    /// let text = Session.openMetrics(of: ["api": api, "images": images])
    /// // urlloading_loads{session="api"} 3
    /// ```
    /// - Parameter sessions: the sessions, by the value of the label `session`.
    public static func openMetrics(of sessions: [String: Session]) -> String {
        OpenMetricsText(named: sessions.mapValues { $0.live.counted($0.core.snapshot()) }).text
    }
}

extension Core {
    fileprivate func snapshot() -> SessionSnapshot {
        var snapshot = SessionSnapshot(
            process: ProgramEnvironment.process, moment: configuration.clock.now(), loads: registry.count)
        var hosts: [String: SessionSnapshot.Host] = [:]
        for route in pool.snapshot() {
            // Routes that differ in their login or trust only are one host.
            let name = route.route.proxyChain.isDirect ? "\(route.route.origin)" : "\(route.route)"
            var host = hosts[name] ?? SessionSnapshot.Host(name: name)
            host.connecting += route.connecting
            host.active += route.active
            host.idle += route.idle
            host.resting += route.resting
            host.waiting += route.waiting
            host.streams += route.streams
            hosts[name] = host
        }
        for handler in configuration.handlers {
            for (name, count) in (handler as? RequestRate)?.waiting ?? [:] {
                let held = hosts[name]?.held ?? 0
                hosts[name, default: SessionSnapshot.Host(name: name)].held = held + count
            }
            for name in (handler as? CircuitBreaker)?.open ?? [] {
                hosts[name, default: SessionSnapshot.Host(name: name)].isRefused = true
            }
        }
        snapshot.hosts = Array(hosts.values)
        snapshot.external = cache?.external?.counts
        return snapshot
    }
}
