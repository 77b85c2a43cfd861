// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// A store in the memory of a test, which may answer in place of what it keeps.
final class TestStore: ResponseStore {
    struct State: Sendable {
        var values: [String: Data] = [:]
        var lifetimes: [String: Duration] = [:]
        var lookUps = 0
        var stored = 0
        var removed = 0
    }
    let state = Watched(State())
    /// Answers a look-up, given the key and what is stored under it.
    private let answer: (@Sendable (String, Data?) async throws -> ResponseStoreValue?)?
    /// Called before a change.
    private let gate: (@Sendable () async throws -> Void)?

    init(
        answering answer: (@Sendable (String, Data?) async throws -> ResponseStoreValue?)? = nil,
        before gate: (@Sendable () async throws -> Void)? = nil
    ) {
        (self.answer, self.gate) = (answer, gate)
    }

    var values: [String: Data] { state.value.values }

    func value(for key: String) async throws -> ResponseStoreValue? {
        let value = state.change { state -> Data? in
            state.lookUps += 1
            return state.values[key]
        }
        if let answer { return try await answer(key, value) }
        return value.map { ResponseStoreValue($0) }
    }

    func store(_ value: ResponseStoreValue, for key: String, lifetime: Duration) async throws {
        try await gate?()
        let bytes = try await value.data
        #expect(value.count == bytes.count)
        state.change { state in
            (state.values[key], state.lifetimes[key]) = (bytes, lifetime)
            state.stored += 1
        }
    }

    func removeValue(for key: String) async throws {
        try await gate?()
        state.change { state in
            state.values[key] = nil
            state.removed += 1
        }
    }
}

struct StoreFailure: Error {}

extension CacheRig {
    /// Another session with the same cache, at the same time.
    func beside<R>(
        _ store: any ResponseStore, decisions: Decisions? = nil, _ change: (inout Configuration) -> Void = { _ in },
        _ use: nonisolated(nonsending) (CacheRig) async throws -> R
    ) async throws -> R {
        var configuration = Configuration.ephemeral
        configuration.caching.external = patient(store)
        configuration.wallClock = { [clock] in clock.now }
        configuration.cacheTap = { [plans] plan in plans.withLock { $0.append(plan) } }
        change(&configuration)
        return try await withSession(configuration, decisions: decisions) { session in
            try await use(CacheRig(origin: origin, session: session, clock: clock, cache: cache, plans: plans))
        }
    }

    var counts: StoreCounts { session.core.cache?.external?.counts ?? StoreCounts() }

    /// Waits until every change of the store has ended; nothing notifies of that.
    func settled() async throws { try await session.eventuallyLoads { $0 == 0 } }
}

/// A busy machine is no slow store.
func patient(_ store: any ResponseStore) -> ExternalCache {
    var settings = ExternalCache(store)
    settings.timeout = .seconds(60)
    return settings
}

/// An origin, and a session with an external cache.
nonisolated(nonsending) func withExternalRig(
    _ store: any ResponseStore, decisions: Decisions? = nil, _ change: (inout Configuration) -> Void = { _ in },
    _ use: nonisolated(nonsending) (CacheRig) async throws -> Void
) async throws {
    try await withCacheRig(
        decisions: decisions,
        {
            $0.caching.external = patient(store)
            change(&$0)
        }, use)
}
