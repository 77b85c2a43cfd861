// SPDX-License-Identifier: Apache-2.0

// Loads that affect other loads: equal requests that share one fetch, and background refreshes of stale responses.

extension CacheFetch {
    // MARK: Shared fetches

    /// Waits for the fetch of an equal request, or leads one.
    @inline(never)
    func share(_ first: CachePlan) async throws(LoadError) -> any Exchange {
        let question = SharedFetch.Question(
            key: key, headers: hop.request.headers, identity: query.identity, policy: query.policy,
            isForeign: hop.isForeign)
        var plan = first
        while true {
            // Followers wait for a stored response; a request that may not use one has nothing to wait for.
            if query.policy == .reload || query.policy == .reloadIgnoringCaches { return try await fetch(plan, nil) }
            switch cache.enter(question, mayLead: load.consumer.readsToEnd && !load.mayWaitForOthers) {
            case nil: return try await fetch(plan, nil)
            case .leader(let shared)?:
                load.events?.leads(shared)
                return try await fetch(plan, shared)
            case .follower(let shared)?:
                guard let outcome = await shared.outcome(for: load) else { throw stopped }
                if case .unstorable = outcome { return try await fetch(plan, nil) }
                plan = self.plan(try await variants(again: true))
                switch plan {
                case .network, .validate, .complete: if case .stored = outcome { return try await fetch(plan, nil) }
                case .stored, .storedAndRefresh, .refused: return try await act(plan)
                }
            }
        }
    }

    // MARK: Refreshes (RFC 5861 §3)

    /// Refreshes a stale response with a load of its own, which the session waits for or cancels when it is
    /// invalidated.
    func refresh() {
        // With a cache decision of the task, nothing can be stored: the decision cannot be asked after the task has
        // ended.
        guard load.decisions?.cache == nil, cache.beginRefresh(key) else { return }
        var asked = hop
        asked.request.cachePolicy = .revalidate
        asked.purpose = .refresh
        // If the first load asks no cache decision, the refresh asks none either.
        let consumer: BodyConsumer = load.cacheDecision == nil ? .file : .reader
        // Unsigned, the refresh would be another user's request.
        var decisions: Decisions?
        if let own = load.decisions, own.signs {
            var signing = Decisions()
            signing.sign = own.sign
            decisions = signing
        }
        let refresh = LoadContext(load.core, asked.request, decisions, consumer: consumer)
        refresh.handle.startClock()
        guard load.core.registry.enter(refresh.handle) else { return cache.endRefresh(key) }
        Task(executorPreference: LoopPreference.current, priority: .utility) { [cache = cache.whole, key, asked] in
            await Self.refresh(asked, for: refresh, cache)
            cache.endRefresh(key)
        }
    }

    /// Fetches a response that has just been served stale.
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
