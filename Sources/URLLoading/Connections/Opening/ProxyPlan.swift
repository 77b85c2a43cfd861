// SPDX-License-Identifier: Apache-2.0

// The proxy chains to an origin according to a session's policy. Made once per session, so that the environment is read
// once.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class ProxyPlan: Sendable {
    private enum Source: Sendable {
        case direct
        case environment(ProxyEnvironment)
        case desktop(fallback: [ProxyChain])
        case fixed(ProxyChain, ProxyBypass)
        case schemes(ProxySchemes, ProxyBypass)
        case decided(@Sendable (URL) async throws -> [ProxyChain])
    }
    private let source: Source
    /// The policy always connects directly: the usual case, which costs a load nothing.
    let isDirect: Bool
    /// The configuration names the proxies itself, or decides about them.
    let isConfigured: Bool

    private let overrides: AddressOverrides

    private let waitsForQuestions: Bool

    /// - Parameter waitsForQuestions: credentials are sent to proxies only after a challenge.
    init(
        _ policy: ProxyPolicy, _ overrides: AddressOverrides = [],
        _ environment: @autoclosure () -> ProxyEnvironment = .current,
        waitsForQuestions: Bool = false
    ) {
        self.overrides = overrides
        self.waitsForQuestions = waitsForQuestions
        source =
            switch policy.choice {
            case .none: .direct
            case .fixed(let chain, _) where chain.isDirect: .direct
            case .fixed(let chain, let bypass): .fixed(chain, bypass)
            case .schemes(let schemes, _) where schemes.isEmpty: .direct
            case .schemes(let schemes, let bypass): .schemes(schemes, bypass)
            case .decided(let decide): .decided(decide)
            case .environment(let bypass): Self.source(environment().except(bypass), else: .direct)
            case .given(let environment): Self.source(environment, else: .direct)
            case .automatic(let proxyChains):
                Self.source(environment(), else: DesktopProxies.isAvailable ? .desktop(fallback: proxyChains) : .direct)
            }
        if case .direct = source { isDirect = true } else { isDirect = false }
        isConfigured =
            switch source {
            case .fixed, .schemes, .decided: true
            case .direct, .environment, .desktop: false
            }
    }

    private static func source(_ environment: ProxyEnvironment, else other: Source) -> Source {
        environment.isEmpty ? other : .environment(environment)
    }

    /// Returns the chains to try, in order; at least one.
    func chains(to origin: Origin, _ url: URL?, for load: LoadHandle) async throws(LoadError) -> [ProxyChain] {
        // A Unix socket of this machine is not reachable through a proxy.
        guard overrides.unixSocket(for: origin) == nil else { return [.direct] }
        switch source {
        case .direct: return [.direct]
        case .environment(let environment):
            return [try environment.chain(to: origin.host, port: origin.port, scheme: origin.scheme)]
        case .fixed(let chain, let bypass): return [bypass.contains(origin.host, origin.port) ? .direct : chain]
        case .schemes(let schemes, let bypass):
            return [bypass.contains(origin.host, origin.port) ? .direct : try schemes.chain(origin.scheme) ?? .direct]
        case .desktop(let proxyChains): return try await DesktopProxies.chains(to: origin, fallback: proxyChains, load)
        case .decided(let decide):
            guard let url else { return [.direct] }
            return try await ask(decide, url, load)
        }
    }

    private func ask(
        _ decide: @escaping @Sendable (URL) async throws -> [ProxyChain], _ url: URL, _ load: LoadHandle
    ) async throws(LoadError) -> [ProxyChain] {
        let answer = await CallbackOutcome<Result<[ProxyChain], any Error>>.run(load) {
            do { return .success(try await decide(url)) } catch { return .failure(error) }
        }
        switch answer {
        case .answered(.success(let chains)) where !chains.isEmpty: return chains
        case .answered(.success), .late:
            throw LoadError(.badDecision, phase: .preparing, party: .local, detail: "the closure returned no chain")
        case .answered(.failure(let error)):
            throw LoadError(
                .decisionFailed, phase: .preparing, party: .local, detail: "the closure of proxyPolicy failed",
                underlying: error)
        case .stopped: throw LoadError(load.stopReason ?? .cancelled, phase: .preparing)
        }
    }
}

extension ProxyPlan {
    /// Runs `attempt` with one chain after the other until a proxy can be reached.
    func first<Value>(
        to origin: Origin, _ url: URL?, for load: LoadHandle,
        _ attempt: (ProxyChain) async throws(LoadError) -> Value
    ) async throws(LoadError) -> Value {
        guard !isDirect else { return try await attempt(.direct) }
        var chains = try await chains(to: origin, url, for: load)
        if waitsForQuestions { chains = chains.map(\.waitingForQuestions) }
        for chain in chains.dropLast() {
            do throws(LoadError) { return try await attempt(chain) } catch {
                guard error.permitsAnotherProxy else { throw error }
            }
        }
        return try await attempt(chains.last ?? .direct)
    }
}
