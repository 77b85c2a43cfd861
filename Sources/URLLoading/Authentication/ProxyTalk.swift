// What is said to proxies on the way to something that is no http. What the tunnel leads to is nobody's business but the
// proxies': its host and port.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// Made for one connection; the load's own task uses it.
final class ProxyTalk {
    private let origin: Origin
    private let load: LoadControl
    private let core: Core
    /// Made when the first proxy wants to know who asks.
    private var talk: AuthenticationTalk?

    init(_ origin: Origin, _ load: LoadControl, _ core: Core) {
        self.origin = origin
        self.load = load
        self.core = core
    }

    /// Goes a way, and once more with what is known then if a proxy asks.
    func open<Value>(
        _ way: ProxyChain, _ attempt: (ProxyChain) async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard !way.isDirect else { return try await attempt(way) }
        defer { load.forgetRefusedTunnel() }
        while true {
            let way = talk?.opened(way) ?? core.authenticator.opened(way)
            do throws(LoadError) {
                let value = try await attempt(way)
                await talk?.passedProxy()
                return value
            } catch {
                guard try await answers(error, way) else { throw error }
            }
        }
    }

    /// Whether the way is to be tried again, with what is known now.
    private func answers(_ error: LoadError, _ way: ProxyChain) async throws(LoadError) -> Bool {
        guard error.reason == .proxyAuthenticationRequired else { return false }
        guard let url = URL(string: "http://\(origin.host):\(origin.port)/"),
            case .success(let destination) = Request(url: url).destination
        else { return false }
        let heard = talk ?? AuthenticationTalk(load, core, url, destination)
        talk = heard
        return try await heard.hear(error, way)
    }
}
