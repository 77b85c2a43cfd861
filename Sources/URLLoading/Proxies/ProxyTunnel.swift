// From the first proxy to the origin. A tunnel is the transport it was opened over, and nothing more: each hop is
// asked in its own words, and from its yes on the bytes are those of whoever is behind it.
//
// Rule 1: what a hop sends behind its yes is not read here: it belongs to whoever speaks next.
// Rule 2: a proxy hears host, port and what opens it, and nothing of the request; its no reaches the caller as an
// error, for a proxy must not answer in the name of an origin that it has not reached.

import URLLoadingIO
import URLLoadingWire

extension Connector {
    /// - Parameter forwarded: the last proxy gets the requests themselves, so no tunnel leads out of it.
    func tunnel(
        through way: ProxyChain, to host: Origin.Host, _ port: UInt16, forwarded: Bool, _ control: LoadControl,
        _ access: NetworkAccess, _ record: TransactionRecord?, _ tap: ProxyTap?
    ) async throws(LoadError) -> any Transport {
        guard let first = way.proxies.first else { throw .badProxy("no proxy") }
        var transport: any Transport
        do throws(LoadError) {
            transport = try await socket(to: first.host, first.port, for: nil, control, access, record)
        } catch { throw error.at(first) }
        for (index, proxy) in way.proxies.enumerated() {
            do throws(LoadError) {
                if proxy.kind == .https { transport = try await secured(transport, with: proxy, control) }
                let isLast = index == way.proxies.count - 1
                if isLast, forwarded { break }
                let next = isLast ? (host, port) : (way.proxies[index + 1].host, way.proxies[index + 1].port)
                let opening = ProxyOpening(transport, proxy, control, configuration, tap)
                try await opening.open(to: next.0, next.1)
            } catch {
                transport.close()
                throw error.at(proxy)
            }
        }
        return transport
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
