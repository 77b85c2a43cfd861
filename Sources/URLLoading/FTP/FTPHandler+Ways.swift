// The way to a control connection: tries after the first, as a policy says; a wait for a network; proxies that want to
// know who asks.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension FTPHandler {
    /// One try after the other.
    @inline(never)
    func tries(_ hop: Load.Hop, _ policy: RetryPolicy, for load: Load) async throws(LoadError) -> any Exchange {
        var plan = BackOffPlan(hop.request, policy, now: load.clock.now())
        while true {
            let retry: Retry
            do throws(LoadError) {
                return try await once(hop, for: load)
            } catch {
                guard let next = plan.retry(after: error, now: load.clock.now(), roll: .random(in: 0..<1)), load.mayTryAgain()
                else { throw error }
                retry = next
            }
            do throws(LoadError) {
                try await load.backOff(retry, hearsPaths: policy.retriesOnPathChange)
            } catch { throw error.at(hop.request.url) }
        }
    }

    func lease(
        _ plan: FTPPlan, _ request: Request, _ login: FTPLogin, for load: Load, fresh: Bool, _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPTransfer {
        let talk = FTPProxyTalk(plan.target.origin, load)
        return try await load.core.proxies.first(to: plan.target.origin, request.url, for: load) { (way) throws(LoadError) in
            while true {
                let way = talk.opened(way)
                do throws(LoadError) {
                    let transfer = try await lease(plan, request, login, through: way, for: load, fresh: fresh, record)
                    await talk.passed()
                    return transfer
                } catch {
                    guard try await talk.answers(error, way) else { throw error }
                }
            }
        }
    }

    private func lease(
        _ plan: FTPPlan, _ request: Request, _ login: FTPLogin, through way: ProxyChain, for load: Load, fresh: Bool,
        _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPTransfer {
        let core = load.core, access = NetworkAccess(request, core.configuration, to: plan.target.origin.host)
        var route = Route(origin: plan.target.origin, way: way)
        route.traffic = access.traffic
        route.ftp = FTPKey(login.credential, core.configuration.ftp)
        route.trust = Route.Trust(generation: core.pool.connector.secure.generation, group: load.handshakeDecision?.group ?? 0)
        let dialling = FTPDialling(load, access, route)
        let connection = try await lease(dialling, for: load, fresh: fresh, over: access, record)
        if connection.transfers > 0, let refusal = access.refusal(of: connection.transport, core.configuration.networkMonitor) {
            core.pool.ftp.giveBack(connection, reusable: connection.isReusable)
            throw refusal
        }
        return FTPTransfer(connection, plan, request, load, dialling, record)
    }

    /// A connection, after a wait for a network if there is none and the load waits for one.
    private func lease(
        _ dialling: FTPDialling, for load: Load, fresh: Bool, over access: NetworkAccess, _ record: TransactionRecord?
    ) async throws(LoadError) -> FTPConnection {
        while true {
            do throws(LoadError) {
                return try await load.core.pool.ftp.lease(dialling.route, load, fresh: fresh) { () throws(LoadError) in
                    try await dialling.control(record)
                }
            } catch {
                guard access.needsPath, try await load.waitForConnectivity(after: error, access) else { throw error }
            }
        }
    }
}

/// What is said to proxies that want to know who asks before they open a tunnel; made when the first does. The load's own
/// task uses it.
private final class FTPProxyTalk {
    private let origin: Origin
    private let load: Load
    private var talk: AuthenticationTalk?

    init(_ origin: Origin, _ load: Load) { (self.origin, self.load) = (origin, load) }

    func opened(_ way: ProxyChain) -> ProxyChain { talk?.opened(way) ?? load.core.authenticator.opened(way) }

    func passed() async { await talk?.passedProxy() }

    /// Whether the way is to be tried again, with what is known now.
    func answers(_ error: LoadError, _ way: ProxyChain) async throws(LoadError) -> Bool {
        guard error.reason == .proxyAuthenticationRequired else { return false }
        // What the tunnel leads to is nobody's business but the proxy's: its host and port.
        guard let text = URL(string: "http://\(origin.host):\(origin.port)/") else { return false }
        let asked = Request(url: text)
        guard case .success(let destination) = asked.destination else { return false }
        let heard = talk ?? AuthenticationTalk(Load.Hop(request: asked), load, destination)
        talk = heard
        return try await heard.hear(error, way)
    }
}
