// Loads that concern others: equal ones that wait for one fetch, and refreshes behind what was given out stale.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension CacheLine {
    // MARK: Others who ask for the same

    /// Waits for who asked first, or is that one.
    @inline(never)
    func share(_ first: CachePlan) async throws(LoadError) -> any Exchange {
        let question = SharedFetch.Question(
            key: key, headers: hop.request.headers, identity: query.identity, policy: query.policy,
            isForeign: hop.isForeign)
        var plan = first
        while true {
            // A stored response is what is waited for: who would not take it waits for nothing.
            if query.policy == .reload || query.policy == .reloadIgnoringCaches { return try await fetch(plan, nil) }
            switch cache.enter(question, mayLead: load.readsToEnd && !load.mayWaitForOthers) {
            case nil: return try await fetch(plan, nil)
            case .leader(let shared)?:
                load.lead(shared)
                return try await fetch(plan, shared)
            case .follower(let shared)?:
                guard let outcome = await shared.outcome(for: load) else { throw stopped }
                if case .unstorable = outcome { return try await fetch(plan, nil) }
                plan = self.plan(try await variants())
                switch plan {
                case .network, .validate, .complete: if case .stored = outcome { return try await fetch(plan, nil) }
                case .stored, .storedAndRefresh, .refused: return try await act(plan)
                }
            }
        }
    }

    // MARK: Refreshes (RFC 5861 §3)

    /// A load of its own: the session waits for it, or ends it.
    func refresh() {
        // A task's own decision is not asked when the task is over, and nothing is kept without it.
        guard load.decisions?.cache == nil, cache.beginRefresh(key) else { return }
        var request = hop.request
        request.cachePolicy = .revalidate
        var asked = hop
        asked.request = request
        let refresh = RefreshLoad(load.core, request, nil, isHandle: false)
        refresh.decision = load.cacheDecision
        refresh.startClock()
        guard load.core.registry.enter(refresh) else { return cache.endRefresh(key) }
        Task(priority: .utility) { [cache, key, asked] in
            await refresh.refresh(asked, cache)
            cache.endRefresh(key)
        }
    }
}

/// Fetches anew what has just been given out stale.
final class RefreshLoad: Load, @unchecked Sendable {
    /// What is kept is for him to say who was given the stale one. Set before it begins.
    var decision: Decision<CachedResponse, CacheDecision>?
    override var cacheDecision: Decision<CachedResponse, CacheDecision>? { decision }

    func refresh(_ hop: Hop, _ cache: SessionCache) async {
        do throws(LoadError) {
            let exchange = try await CacheLine.answer(hop, for: self, cache)
            while try await exchange.next() != nil {}
            end(nil)
        } catch {
            end(error)
        }
    }
}
