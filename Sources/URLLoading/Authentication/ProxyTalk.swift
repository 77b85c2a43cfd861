// What is said to proxies on the way to something that is no http. What the tunnel leads to is nobody's business but the
// proxies': its host and port.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A way that a proxy did not open.
struct ProxyRefusal {
    let error: LoadError
    let way: ProxyChain
    /// The channel binding of the connection to the proxy, if that is kept (RFC 5929).
    let binding: [UInt8]?
}

/// Made for one connection; the load's own task uses it.
final class ProxyTalk {
    private let origin: Origin
    private let load: any ConnectionClient
    private let core: Core
    /// Made when the first proxy wants to know who asks.
    private var talk: AuthenticationTalk?

    init(_ origin: Origin, _ load: any ConnectionClient, _ core: Core) {
        self.origin = origin
        self.load = load
        self.core = core
    }

    /// Goes a way, and once more with what is known then if a proxy asks.
    func open<Value>(
        _ way: ProxyChain, _ attempt: (ProxyChain, RefusedTunnels?) async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard !way.isDirect else { return try await attempt(way, nil) }
        let refused = RefusedTunnels()
        defer { refused.forget() }
        while true {
            let way = talk?.opened(way) ?? core.authenticator.opened(way)
            do throws(LoadError) {
                let value = try await attempt(way, refused)
                await talk?.passedProxy()
                return value
            } catch {
                let refusal = ProxyRefusal(error: error, way: way, binding: refused.binding)
                guard try await answers(refusal) else { throw error }
            }
        }
    }

    /// Whether the way is to be tried again, with what is known now.
    private func answers(_ refusal: ProxyRefusal) async throws(LoadError) -> Bool {
        guard refusal.error.reason == .proxyAuthenticationRequired else { return false }
        guard let url = URL(string: "http://\(origin.host):\(origin.port)/"),
            case .success(let destination) = Request(url: url).destination
        else { return false }
        let heard = talk ?? AuthenticationTalk(load, core, url, destination)
        talk = heard
        return try await heard.hear(refusal)
    }
}
