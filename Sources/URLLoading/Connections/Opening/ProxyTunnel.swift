// SPDX-License-Identifier: Apache-2.0

// Opens a tunnel from the first proxy to the origin. The tunnel is the transport that it was opened over: each hop is
// asked in its protocol, and after its consent the bytes are those of the next hop.
//
// Rule 1: bytes after a hop's consent are not read here: they belong to the next protocol.
// Rule 2: a proxy learns host, port and its credentials, and nothing else of the request. Its refusal is an error, not
// a response: a proxy must not answer in the name of an origin.

import URLLoadingIO
import URLLoadingWire

extension Connector {
    /// The destination of a tunnel, and the request it is opened for.
    struct TunnelPlan {
        let proxyChain: ProxyChain
        let host: Origin.Host
        let port: UInt16
        /// The last proxy forwards requests, so no tunnel leads out of it.
        var isForwarded = false
        let request: ConnectionRequest
        var tap: ProxyTap?

        /// The host and port that the proxy at this index is asked to connect to.
        func next(after index: Int) -> (host: Origin.Host, port: UInt16) {
            index == proxyChain.proxies.count - 1
                ? (host, port) : (proxyChain.proxies[index + 1].host, proxyChain.proxies[index + 1].port)
        }
    }

    func tunnel(_ plan: TunnelPlan) async throws(LoadError) -> any Transport {
        guard let first = plan.proxyChain.proxies.first else { throw .badProxy("no proxy") }
        guard plan.proxyChain.proxies.dropFirst().allSatisfy({ $0.socketPath == nil }) else {
            throw .badProxy("only the first proxy can be on a Unix socket")
        }
        if let transport = try await again(plan) { return transport }
        let transport: any Transport
        do throws(LoadError) { transport = try await socket(to: first, plan.request) } catch { throw error.at(first) }
        return try await pass(transport, from: 0, plan, plan.tap)
    }

    /// Continues with a proxy that demanded credentials, if its connection is still open.
    private func again(_ plan: TunnelPlan) async throws(LoadError) -> (any Transport)? {
        let request = plan.request
        guard var kept = request.refused?.take() else { return nil }
        let opening = ProxyOpening(kept.transport, kept.proxy, request.handle, configuration, kept.tap)
        guard !plan.isForwarded, kept.begins(plan.proxyChain), await opening.finish(&kept.refusal) else {
            kept.close()
            return nil
        }
        request.record?.mark(.connectStart)
        do throws(LoadError) {
            return try await pass(kept.transport, from: kept.passed.count, isSecured: true, plan, kept.tap)
        } catch  where error.reason == .connectionLost && request.handle.stopReason == nil {
            // The proxy has closed the idle connection; the caller makes another.
            return nil
        }
    }

    /// Opens the tunnel from a connection to the proxy at index `start` to the end of the chain.
    private func pass(
        _ first: any Transport, from start: Int, isSecured: Bool = false, _ plan: TunnelPlan, _ tap: ProxyTap?
    ) async throws(LoadError) -> any Transport {
        let request = plan.request
        var transport = first
        for (index, proxy) in plan.proxyChain.proxies.enumerated().dropFirst(start) {
            var isKept = false
            let next = plan.next(after: index)
            let address: SOCKSAddress.Host?
            do throws(LoadError) { address = try await self.address(of: next, for: proxy, request) } catch {
                transport.close()
                throw index == plan.proxyChain.proxies.count - 1 ? error : error.at(plan.proxyChain.proxies[index + 1])
            }
            do throws(LoadError) {
                if proxy.kind == .https, !isSecured || index > start {
                    transport = try await secured(transport, with: proxy, request.client)
                }
                if index == plan.proxyChain.proxies.count - 1, plan.isForwarded { break }
                let opening = ProxyOpening(transport, proxy, request.handle, configuration, tap)
                guard
                    let refusal = try await opening.open(
                        to: next.host, next.port, at: address, isAgain: isSecured && index == start)
                else { continue }
                if let refused = request.refused, refusal.mayBeAskedAgain {
                    isKept = true
                    refused.keep(
                        RefusedTunnel(
                            transport: transport, passed: plan.proxyChain.proxies[..<index], proxy: proxy,
                            refusal: refusal,
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

    /// Returns the address to send to a proxy that must not resolve names. IPv4 comes first, because not every proxy
    /// supports IPv6.
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
    /// The origin by which a test's dialer is asked for a connection to a proxy.
    init?(proxy host: Host, _ port: UInt16) {
        guard let origin = try? Origin(scheme: "http", host: host, port: port) else { return nil }
        self = origin
    }
}
