// SPDX-License-Identifier: Apache-2.0

// Leases a control connection: retries according to the policy, waits for connectivity, and answers proxy challenges.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension FTPHandler {
    /// Runs attempts according to a retry policy.
    @inline(never)
    func runAttempts(_ hop: Hop, _ policy: RetryPolicy, for load: LoadContext) async throws(LoadError) -> any Exchange {
        var plan = BackoffPlan(hop.request, policy, now: load.clock.now())
        while true {
            let retry: Retry
            do throws(LoadError) {
                return try await once(hop, for: load)
            } catch {
                guard let next = plan.retry(after: error, now: load.clock.now(), roll: .random(in: 0..<1)),
                    load.mayRetry()
                else { throw error }
                retry = next
            }
            do throws(LoadError) {
                try await load.backoff(retry, endsOnPathChange: policy.retriesOnNetworkChange)
            } catch { throw error.at(hop.request.url) }
        }
    }

    func lease(_ attempt: FTPAttempt, for load: LoadContext) async throws(LoadError) -> FTPTransfer {
        let origin = attempt.plan.target.origin
        let authentication = TunnelAuthentication(origin, load, load.core)
        return try await load.core.proxies.first(to: origin, attempt.request.url, for: load.handle) {
            (proxyChain) throws(LoadError) in
            try await authentication.open(proxyChain) { (proxyChain, refused) throws(LoadError) in
                try await lease(attempt, through: proxyChain, refused, for: load)
            }
        }
    }

    private func lease(
        _ attempt: FTPAttempt, through proxyChain: ProxyChain, _ refused: RefusedTunnels?, for load: LoadContext
    ) async throws(LoadError) -> FTPTransfer {
        let core = load.core
        let origin = attempt.plan.target.origin
        let access = NetworkAccess(attempt.request, core.requestDefaults, to: origin.host)
        var route = Route(origin: origin, proxyChain: proxyChain)
        route.traffic = access.traffic
        route.ftp = FTPKey(
            attempt.login.credential, account: core.configuration.ftp.account,
            security: "\(core.configuration.ftp.security)")
        route.trust = Route.Trust(
            generation: core.pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        let connector = FTPConnector(load, access, route, refused)
        let connection = try await lease(connector, attempt, for: load, over: access)
        if connection.transfers > 0,
            let refusal = access.refusal(of: connection.transport, core.configuration.networkMonitor)
        {
            core.pool.ftp.giveBack(connection, reusable: connection.isReusable)
            throw refusal
        }
        return FTPTransfer(attempt, on: connection, connector, for: load)
    }

    /// Returns a connection; waits for connectivity first if the load does and there is no network.
    private func lease(
        _ connector: FTPConnector, _ attempt: FTPAttempt, for load: LoadContext, over access: NetworkAccess
    ) async throws(LoadError) -> FTPConnection {
        while true {
            do throws(LoadError) {
                return try await load.core.pool.ftp.lease(connector.route, load.handle, fresh: attempt.isFresh) {
                    () throws(LoadError) in
                    try await connector.control(attempt.record)
                }
            } catch {
                guard access.needsPath, try await load.waitForConnectivity(after: error, access) else { throw error }
            }
        }
    }
}
