// From the first proxy to the origin. A tunnel is the transport it was opened over, and nothing more: each hop is
// asked in its own words, and from its yes on the bytes are those of whoever is behind it.
//
// Rule 1: what a hop sends behind its yes is not read here: it belongs to whoever speaks next.
// Rule 2: a proxy hears host, port and what opens it, and nothing of the request; its no reaches the caller as an
// error, for a proxy must not answer in the name of an origin that it has not reached.

import URLLoadingIO
import URLLoadingWire

extension Connector {
    /// Where a tunnel leads, and whose it is.
    struct TunnelPlan {
        let way: ProxyChain
        let host: Origin.Host
        let port: UInt16
        /// The last proxy gets the requests themselves, so no tunnel leads out of it.
        var isForwarded = false
        /// A proxy that wants credentials may be asked again on the same connection: the load takes care of it.
        var keepsRefused = false
        let access: NetworkAccess
        let record: TransactionRecord?
        let tap: ProxyTap?

        /// What the proxy of this number is asked for.
        func next(after index: Int) -> (host: Origin.Host, port: UInt16) {
            index == way.proxies.count - 1 ? (host, port) : (way.proxies[index + 1].host, way.proxies[index + 1].port)
        }
    }

    func tunnel(_ plan: TunnelPlan, _ control: LoadControl) async throws(LoadError) -> any Transport {
        guard let first = plan.way.proxies.first else { throw .badProxy("no proxy") }
        guard plan.way.proxies.dropFirst().allSatisfy({ $0.socketPath == nil }) else {
            throw .badProxy("only the first proxy can be on a Unix socket")
        }
        if let transport = try await again(plan, control) { return transport }
        let transport: any Transport
        do throws(LoadError) {
            transport = try await socket(to: first, control, plan.access, plan.record)
        } catch { throw error.at(first) }
        return try await pass(transport, from: 0, plan, plan.tap, control)
    }

    /// Through a proxy that refused before, where it is still there.
    private func again(_ plan: TunnelPlan, _ control: LoadControl) async throws(LoadError) -> (any Transport)? {
        guard var kept = control.takeRefusedTunnel() else { return nil }
        let opening = ProxyOpening(kept.transport, kept.proxy, control, configuration, kept.tap)
        guard plan.keepsRefused, !plan.isForwarded, kept.begins(plan.way), await opening.finish(&kept.refusal) else {
            kept.close()
            return nil
        }
        plan.record?.mark(.connectStart)
        do throws(LoadError) {
            return try await pass(kept.transport, from: kept.passed.count, isSecured: true, plan, kept.tap, control)
        } catch  where error.reason == .connectionLost && control.stopReason == nil {
            // As a connection ends that was kept: another takes its place.
            return nil
        }
    }

    /// From a connection to the proxy of that number to the end of the way.
    private func pass(
        _ first: any Transport, from start: Int, isSecured: Bool = false, _ plan: TunnelPlan, _ tap: ProxyTap?,
        _ control: LoadControl
    ) async throws(LoadError) -> any Transport {
        var transport = first
        for (index, proxy) in plan.way.proxies.enumerated().dropFirst(start) {
            var isKept = false
            let next = plan.next(after: index)
            let address: SOCKSAddress.Host?
            do throws(LoadError) { address = try await self.address(of: next, for: proxy, plan, control) } catch {
                transport.close()
                throw index == plan.way.proxies.count - 1 ? error : error.at(plan.way.proxies[index + 1])
            }
            do throws(LoadError) {
                if proxy.kind == .https, !isSecured || index > start {
                    transport = try await secured(transport, with: proxy, control)
                }
                if index == plan.way.proxies.count - 1, plan.isForwarded { break }
                let opening = ProxyOpening(transport, proxy, control, configuration, tap)
                guard
                    let refusal = try await opening.open(
                        to: next.host, next.port, at: address, isAgain: isSecured && index == start)
                else { continue }
                if plan.keepsRefused, refusal.mayBeAskedAgain {
                    isKept = true
                    control.keep(
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
        of place: (host: Origin.Host, port: UInt16), for proxy: Proxy, _ plan: TunnelPlan, _ control: LoadControl
    ) async throws(LoadError) -> SOCKSAddress.Host? {
        guard !proxy.looksUpNames, case .name = place.host.kind else { return nil }
        let allowed = try await allowedAddresses(of: place.host, place.port, control, plan.access, plan.record)
        guard let best = allowed.first(where: { $0.family == .ipv4 }) ?? allowed.first else {
            throw LoadError(.hostNotFound, phase: .resolving, party: .system, detail: place.host.description)
        }
        return best.family == .ipv4 ? .ipv4(best.octets) : .ipv6(best.octets)
    }

    private func socket(
        to proxy: Proxy, _ control: LoadControl, _ access: NetworkAccess, _ record: TransactionRecord?
    ) async throws(LoadError) -> any Transport {
        guard let path = proxy.socketPath, configuration.dial == nil else {
            return try await socket(to: proxy.host, proxy.port, for: nil, control, access, record)
        }
        let address: SocketAddress
        do throws(IOFailure) { address = try .unix(path) } catch { throw LoadError(error) }
        return try await socket(at: address, control, record)
    }

    private func secured(
        _ transport: any Transport, with proxy: Proxy, _ control: LoadControl
    ) async throws(LoadError) -> any Transport {
        guard configuration.dial == nil else { return transport }
        return try await secure.handshake(over: transport, with: proxy, control)
    }
}

extension Origin {
    /// As a dialer of a test's own is asked for a proxy.
    init?(proxy host: Host, _ port: UInt16) {
        guard let origin = try? Origin(scheme: "http", host: host, port: port) else { return nil }
        self = origin
    }
}
