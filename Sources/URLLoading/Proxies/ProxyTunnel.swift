// From the first proxy to the origin. A tunnel is the transport it was opened over, and nothing more: each hop is
// asked in its own words, and from its yes on the bytes are those of whoever is behind it.
//
// Rule 1: what a hop sends behind its yes is not read here: it belongs to whoever speaks next.
// Rule 2: a proxy hears host, port and what opens it, and nothing of the request; its no reaches the caller as an
// error, for a proxy must not answer in the name of an origin that it has not reached.

import URLLoadingIO
import URLLoadingWire

extension Connector {
    /// Where a tunnel leads, and for whom.
    struct TunnelPlan {
        let way: ProxyChain
        let host: Origin.Host
        let port: UInt16
        /// The last proxy gets the requests themselves, so no tunnel leads out of it.
        var isForwarded = false
        let request: ConnectionRequest
        var tap: ProxyTap?

        /// What the proxy of this number is asked for.
        func next(after index: Int) -> (host: Origin.Host, port: UInt16) {
            index == way.proxies.count - 1 ? (host, port) : (way.proxies[index + 1].host, way.proxies[index + 1].port)
        }
    }

    func tunnel(_ plan: TunnelPlan) async throws(LoadError) -> any Transport {
        guard let first = plan.way.proxies.first else { throw .badProxy("no proxy") }
        guard plan.way.proxies.dropFirst().allSatisfy({ $0.socketPath == nil }) else {
            throw .badProxy("only the first proxy can be on a Unix socket")
        }
        if let transport = try await again(plan) { return transport }
        let transport: any Transport
        do throws(LoadError) { transport = try await socket(to: first, plan.request) } catch { throw error.at(first) }
        return try await pass(transport, from: 0, plan, plan.tap)
    }

    /// Through a proxy that refused before, if its connection is still open.
    private func again(_ plan: TunnelPlan) async throws(LoadError) -> (any Transport)? {
        let request = plan.request
        guard var kept = request.refused?.take() else { return nil }
        let opening = ProxyOpening(kept.transport, kept.proxy, request.handle, configuration, kept.tap)
        guard !plan.isForwarded, kept.begins(plan.way), await opening.finish(&kept.refusal) else {
            kept.close()
            return nil
        }
        request.record?.mark(.connectStart)
        do throws(LoadError) {
            return try await pass(kept.transport, from: kept.passed.count, isSecured: true, plan, kept.tap)
        } catch  where error.reason == .connectionLost && request.handle.stopReason == nil {
            // The proxy has closed the idle connection: another takes its place.
            return nil
        }
    }

    /// From a connection to the proxy of that number to the end of the way.
    private func pass(
        _ first: any Transport, from start: Int, isSecured: Bool = false, _ plan: TunnelPlan, _ tap: ProxyTap?
    ) async throws(LoadError) -> any Transport {
        let request = plan.request
        var transport = first
        for (index, proxy) in plan.way.proxies.enumerated().dropFirst(start) {
            var isKept = false
            let next = plan.next(after: index)
            let address: SOCKSAddress.Host?
            do throws(LoadError) { address = try await self.address(of: next, for: proxy, request) } catch {
                transport.close()
                throw index == plan.way.proxies.count - 1 ? error : error.at(plan.way.proxies[index + 1])
            }
            do throws(LoadError) {
                if proxy.kind == .https, !isSecured || index > start {
                    transport = try await secured(transport, with: proxy, request.client)
                }
                if index == plan.way.proxies.count - 1, plan.isForwarded { break }
                let opening = ProxyOpening(transport, proxy, request.handle, configuration, tap)
                guard
                    let refusal = try await opening.open(
                        to: next.host, next.port, at: address, isAgain: isSecured && index == start)
                else { continue }
                if let refused = request.refused, refusal.mayBeAskedAgain {
                    isKept = true
                    refused.keep(
                        RefusedTunnel(
                            transport: transport, passed: plan.way.proxies[..<index], proxy: proxy, refusal: refusal,
                            tap: tap))
                }
                throw refusal.error
            } catch {
                if !isKept { transport.close() }
                throw error.at(proxy)
            }
        }
        return transport
    }

    /// What a proxy is told in place of a name that it is not to look up. One of IPv4 if there is one: not every proxy has
    /// the other.
    private func address(
        of place: (host: Origin.Host, port: UInt16), for proxy: Proxy, _ request: ConnectionRequest
    ) async throws(LoadError) -> SOCKSAddress.Host? {
        guard !proxy.resolvesHostNames, case .name = place.host.kind else { return nil }
        let allowed = try await allowedAddresses(of: place.host, place.port, request)
        guard let best = allowed.first(where: { $0.family == .ipv4 }) ?? allowed.first else {
            throw LoadError(.hostNotFound, phase: .resolving, party: .system, detail: place.host.description)
        }
        return best.family == .ipv4 ? .ipv4(best.octets) : .ipv6(best.octets)
    }

    private func socket(
        to proxy: Proxy, _ request: ConnectionRequest
    ) async throws(LoadError) -> any Transport {
        guard let path = proxy.socketPath, configuration.dial == nil else {
            return try await socket(to: proxy.host, proxy.port, for: nil, request)
        }
        let address: SocketAddress
        do throws(IOFailure) { address = try .unix(path) } catch { throw LoadError(error) }
        return try await socket(at: address, request)
    }

    private func secured(
        _ transport: any Transport, with proxy: Proxy, _ client: any ConnectionClient
    ) async throws(LoadError) -> any Transport {
        guard configuration.dial == nil else { return transport }
        return try await secure.handshake(over: transport, with: proxy, client)
    }
}

extension Origin {
    /// As a dialer of a test's own is asked for a proxy.
    init?(proxy host: Host, _ port: UInt16) {
        guard let origin = try? Origin(scheme: "http", host: host, port: port) else { return nil }
        self = origin
    }
}
