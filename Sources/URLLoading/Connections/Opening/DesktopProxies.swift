// SPDX-License-Identifier: Apache-2.0

// The proxies of the desktop's settings, as libproxy returns them, converted to proxy chains.

import URLLoadingIO
import URLLoadingWire

enum DesktopProxies {
    static var isAvailable: Bool { ProxyLibrary.shared != nil }

    static func chains(
        to origin: Origin, fallback: [ProxyChain] = [], _ load: LoadHandle, _ library: ProxyLibrary? = .shared
    ) async throws(LoadError) -> [ProxyChain] {
        guard !origin.host.isThisMachine else { return [.direct] }
        guard let library else {
            if case .unknown = ProxyLibrary.search.answer {
                throw LoadError(
                    .proxyResolutionFailed, phase: .preparing, party: .system,
                    detail: "libproxy cannot be looked for: no file descriptor is free")
            }
            return [.direct]
        }
        // A PAC script is foreign code: it learns neither path nor query.
        let answers = await library.proxies(for: "\(origin)/", load)
        switch answers {
        case nil: throw LoadError(load.stopReason ?? .cancelled, phase: .preparing)
        case .proxies(let answers)? where !answers.isEmpty: return try chains(from: answers)
        // An empty answer does not allow a direct connection.
        case .proxies?, .failed?:
            guard fallback.isEmpty else { return fallback }
            throw LoadError(.proxyResolutionFailed, phase: .preparing, party: .system, detail: "libproxy failed")
        }
    }

    /// Parses `direct://`, `http://host:port`, `socks5://host:port`; unknown kinds are left out. If no chain remains,
    /// the load fails: it must not connect directly.
    static func chains(from answers: [String]) throws(LoadError) -> [ProxyChain] {
        var chains: [ProxyChain] = []
        var failure: LoadError?
        for answer in answers {
            // libproxy does not tell whether a SOCKS proxy resolves names; the settings do.
            let text =
                switch true {
                case answer.hasPrefix("socks4://"): "socks4a://" + answer.dropFirst(9)
                // Browsers, for which these settings are made, let a SOCKS 5 proxy resolve names.
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
