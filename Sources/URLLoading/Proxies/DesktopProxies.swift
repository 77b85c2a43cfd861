// The desktop's proxies, as libproxy knows them: its answers made into ways.

import URLLoadingIO
import URLLoadingWire

enum DesktopProxies {
    static var isAvailable: Bool { ProxyLibrary.shared != nil }

    static func chains(
        to origin: Origin, fallback ways: [ProxyChain] = [], _ load: LoadHandle, _ library: ProxyLibrary? = .shared
    ) async throws(LoadError) -> [ProxyChain] {
        guard !origin.host.isThisMachine, let library else { return [.direct] }
        // A script is somebody else's program: it is told no path and no query.
        let answers = await library.proxies(for: "\(origin)/", load)
        switch answers {
        case nil: throw LoadError(load.stopReason ?? .cancelled, phase: .preparing)
        case .ways(let answers)? where !answers.isEmpty: return try chains(from: answers)
        // No way at all, not even a direct one.
        case .ways?, .failed?:
            guard ways.isEmpty else { return ways }
            throw LoadError(.proxyResolutionFailed, phase: .preparing, party: .system, detail: "libproxy failed")
        }
    }

    /// `direct://`, `http://host:port`, `socks5://host:port`; kinds that are not known here are left out. An answer
    /// of which nothing is left does not mean that there is no proxy.
    static func chains(from answers: [String]) throws(LoadError) -> [ProxyChain] {
        var chains: [ProxyChain] = []
        var failure: LoadError?
        for answer in answers {
            // libproxy says only that it is SOCKS, where the settings do.
            let text =
                switch true {
                case answer.hasPrefix("socks4://"): "socks4a://" + answer.dropFirst(9)
                // Browsers, whose settings these are, let it look up the names.
                case answer.hasPrefix("socks5://"): "socks5h://" + answer.dropFirst(9)
                default: answer
                }
            if text == "direct://" {
                chains.append(.direct)
                continue
            }
            do throws(LoadError) { chains.append([try Proxy(text)]) } catch { failure = error }
        }
        if chains.isEmpty, let failure { throw .badProxy("the desktop's settings: \(failure.detail ?? "")") }
        return chains
    }
}
