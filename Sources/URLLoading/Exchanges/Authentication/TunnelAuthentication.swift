// SPDX-License-Identifier: Apache-2.0

// Authenticates to the proxies of a connection for a protocol other than HTTP. The proxies learn only the host and port
// of the tunnel's destination.

import FoundationEssentials
import URLLoadingWire

/// A proxy chain that a proxy refused to open.
struct ProxyRefusal {
    let error: LoadError
    let proxyChain: ProxyChain
    /// The channel binding of the connection to the proxy, if the connection is kept open (RFC 5929).
    let binding: [UInt8]?
}

/// Made for one connection; used by the load's own task.
final class TunnelAuthentication {
    private let origin: Origin
    private let load: any ConnectionClient
    private let core: Core
    /// Created at the first challenge of a proxy.
    private var authentication: RequestAuthentication?

    init(_ origin: Origin, _ load: any ConnectionClient, _ core: Core) {
        self.origin = origin
        self.load = load
        self.core = core
    }

    /// Opens a proxy chain, and retries with a login after a challenge.
    func open<Value>(
        _ proxyChain: ProxyChain, _ attempt: (ProxyChain, RefusedTunnels?) async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard !proxyChain.isDirect else { return try await attempt(proxyChain, nil) }
        let refused = RefusedTunnels()
        defer { refused.forget() }
        while true {
            let proxyChain = authentication?.opened(proxyChain) ?? core.authenticator.opened(proxyChain)
            do throws(LoadError) {
                let value = try await attempt(proxyChain, refused)
                await authentication?.passedProxy()
                return value
            } catch {
                let refusal = ProxyRefusal(error: error, proxyChain: proxyChain, binding: refused.binding)
                guard try await answers(refusal) else { throw error }
            }
        }
    }

    /// Returns whether to retry the chain with another login.
    private func answers(_ refusal: ProxyRefusal) async throws(LoadError) -> Bool {
        guard refusal.error.reason == .proxyAuthenticationRequired else { return false }
        guard let url = URL(string: "http://\(origin.host):\(origin.port)/"),
            case .success(let destination) = Request(url: url).destination
        else { return false }
        let current = authentication ?? RequestAuthentication(load, core, url, destination)
        authentication = current
        return try await current.process(refusal)
    }
}
