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

    func lease(
        _ plan: FTPPlan, _ request: Request, _ login: FTPLogin, for load: LoadContext, fresh: Bool,
        _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPTransfer {
        let authentication = TunnelAuthentication(plan.target.origin, load, load.core)
        return try await load.core.proxies.first(to: plan.target.origin, request.url, for: load.handle) {
            (way) throws(LoadError) in
            try await authentication.open(way) { (way, refused) throws(LoadError) in
                try await lease(plan, request, login, through: way, refused, for: load, fresh: fresh, record)
            }
        }
    }

    private func lease(
        _ plan: FTPPlan, _ request: Request, _ login: FTPLogin, through way: ProxyChain, _ refused: RefusedTunnels?,
        for load: LoadContext, fresh: Bool, _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPTransfer {
        let core = load.core
        let access = NetworkAccess(request, core.configuration, to: plan.target.origin.host)
        var route = Route(origin: plan.target.origin, way: way)
        route.traffic = access.traffic
        route.ftp = FTPKey(
            login.credential, account: core.configuration.ftp.account, security: "\(core.configuration.ftp.security)")
        route.trust = Route.Trust(
            generation: core.pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        let dialling = FTPConnector(load, access, route, refused)
        let connection = try await lease(dialling, for: load, fresh: fresh, over: access, record)
        if connection.transfers > 0,
            let refusal = access.refusal(of: connection.transport, core.configuration.networkMonitor)
        {
            core.pool.ftp.giveBack(connection, reusable: connection.isReusable)
            throw refusal
        }
        return FTPTransfer(connection, plan, request, load, dialling, record)
    }

    /// Returns a connection; waits for connectivity first if the load does and there is no network.
    private func lease(
        _ dialling: FTPConnector, for load: LoadContext, fresh: Bool, over access: NetworkAccess,
        _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPConnection {
        while true {
            do throws(LoadError) {
                return try await load.core.pool.ftp.lease(dialling.route, load.handle, fresh: fresh) {
                    () throws(LoadError) in
                    try await dialling.control(record)
                }
            } catch {
                guard access.needsPath, try await load.waitForConnectivity(after: error, access) else { throw error }
            }
        }
    }
}
