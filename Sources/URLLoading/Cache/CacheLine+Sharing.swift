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
            switch cache.enter(question, mayLead: load.consumer.readsToEnd && !load.mayWaitForOthers) {
            case nil: return try await fetch(plan, nil)
            case .leader(let shared)?:
                load.events?.leads(shared)
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
        var asked = hop
        asked.request.cachePolicy = .revalidate
        asked.purpose = .refresh
        // What the first load's consumer does not ask about, the refresh does not ask about either.
        let consumer: BodyConsumer = load.cacheDecision == nil ? .file : .reader
        let refresh = LoadContext(load.core, asked.request, nil, consumer: consumer)
        refresh.handle.startClock()
        guard load.core.registry.enter(refresh.handle) else { return cache.endRefresh(key) }
        Task(priority: .utility) { [cache, key, asked] in
            await Self.refresh(asked, for: refresh, cache)
            cache.endRefresh(key)
        }
    }

    /// Fetches anew a response that has just been served stale.
    private static func refresh(_ hop: Hop, for load: LoadContext, _ cache: SessionCache) async {
        do throws(LoadError) {
            let exchange = try await answer(hop, for: load, cache)
            while try await exchange.next() != nil {}
            load.end(nil)
        } catch {
            load.end(error)
        }
    }
}
