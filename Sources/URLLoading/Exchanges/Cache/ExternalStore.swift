// SPDX-License-Identifier: Apache-2.0

// The external cache of a session: the calls of the program's store, and their bounds. A load waits for its look-up
// only; changes are made in tasks of their own, which the session waits for or cancels as it does its loads.

import FoundationEssentials
import Synchronization
import URLLoadingIO

final class ExternalStore: Sendable {
    let settings: ExternalCache
    let admission: StoreAdmission
    let removals: CacheRemovals
    /// Counts the bodies that are held for the store.
    let budget: MemoryBudget
    private let signingKey: [UInt8]?
    /// Whether the store is asked at all: a key that can be guessed proves nothing.
    var isUsable: Bool { signingKey.map { $0.count >= ExternalCache.leastSigningKey } ?? true }

    private struct State: Sendable {
        var changes = StoreChanges()
        var circuit = Circuit()
        /// The number of calls that have not ended, those included that no load waits for any more.
        var running = 0
        var counts = StoreCounts()
    }
    private let state = Lock(State())
    /// The failures in a row after which no call is made for a while, and that time in nanoseconds.
    private static let maximumFailures = 8
    private static let pause: Int64 = 2_000_000_000
    /// Calls beyond that are not made.
    private static let maximumRunning = 256

    /// The clock that responses are dated by, in seconds since 1970.
    private let now: @Sendable () -> Double

    init(_ settings: ExternalCache, _ removals: CacheRemovals, _ clock: (@Sendable () -> Double)?) {
        (self.settings, self.removals) = (settings, removals)
        now = clock ?? { Date().timeIntervalSince1970 }
        admission = StoreAdmission(isShared: settings.isShared)
        budget = MemoryBudget(limit: max(0, settings.maximumBufferedSize))
        signingKey = settings.signingKey.map { [UInt8]($0) }
    }

    var counts: StoreCounts { state.withLock { $0.counts } }
    func count(_ count: any WritableKeyPath<StoreCounts, Int> & Sendable) {
        state.withLock { $0.counts[keyPath: count] += 1 }
    }

    /// The work that the store is asked for.
    struct Work: Sendable {
        /// The handle of the load, whose end ends a look-up.
        let handle: LoadHandle
        /// The register of the session's loads, which changes enter in place of their load.
        let registry: LoadRegistry
    }

    // MARK: Look-ups

    /// What was found for a request.
    struct Finding: Sendable {
        var response: (head: StoredResponse, body: Chunk)?
        /// The index of the URL's variants, if there is one.
        var index: StoreIndex?
    }

    /// Looks a request up.
    /// - Returns: `nil` if the store fails, or is late.
    func look(_ key: StoreKey, _ url: CacheKey, _ query: CacheQuery, for work: Work) async throws(LoadError)
        -> Finding?
    {
        if let change = state.withLock({ $0.changes.last(key) }) {
            let seen = seen(change, key, query, for: work)
            count(seen.response == nil ? \.missing : \.found)
            return seen
        }
        let idle = work.handle.idleLimit
        let limit = idle == .max ? settings.timeout : min(settings.timeout, .nanoseconds(idle))
        let outcome = await call(work.handle, limit) { [self] in try await find(key, url, query) }
        switch outcome {
        case .done(let found):
            count(found.response == nil ? \.missing : \.found)
            return found
        case .stopped: throw LoadError(work.handle.stopReason ?? .cancelled, phase: .preparing).at(query.request.url)
        case .none: return nil
        }
    }

    /// What a look-up finds while a change of its URL is under way.
    private func seen(
        _ change: StoreChanges.Change, _ key: StoreKey, _ query: CacheQuery, for work: Work
    ) -> Finding {
        switch change {
        case .remove:
            if state.withLock({ $0.changes.repeats(key) }) { make(.remove, key, for: work) }
            return Finding()
        case .store(let entry):
            let adopted = admission.adopted(entry.response, query)
            return Finding(response: adopted.map { ($0, entry.body) }, index: entry.index)
        }
    }

    private func find(_ key: StoreKey, _ url: CacheKey, _ query: CacheQuery) async throws -> Finding {
        var finding = Finding()
        do {
            switch try await read(key) {
            case .response(let response, let body)?: finding.response = (response, body)
            case .index(let index)?:
                finding.index = index
                guard let variant = key.variant(index, query),
                    case .response(let response, let body)? = try await read(variant)
                else { return finding }
                finding.response = (response, body)
            case nil: return finding
            }
        } catch let fault as StoreReader.Fault {
            count(fault == .full ? \.left : \.damaged)
        }
        guard let (response, body) = finding.response else { return finding }
        // The digest proves it already, unless another program has written the record.
        let isValid = response.key == url && response.responseTime > state.withLock { $0.changes.forgottenUntil }
        let adopted = isValid ? admission.adopted(response, query) : nil
        finding.response = adopted.map { ($0, body) }
        return finding
    }

    private func read(_ key: StoreKey) async throws -> StoreRecord? {
        guard let value = try await settings.store.value(for: key.text) else { return nil }
        var reader = StoreReader(maximumBody: settings.maximumEntrySize, budget: budget)
        for try await piece in value {
            try Task.checkCancellation()
            try piece.withUnsafeBytes { try reader.take($0) }
        }
        return try reader.record(key, signedWith: signingKey)
    }

    // MARK: Changes

    /// Changes what is stored under a key. Returns at once.
    func change(_ key: StoreKey, _ change: StoreChanges.Change, for work: Work) {
        if state.withLock({ $0.changes.add(change, to: key) }) { make(change, key, for: work) }
    }

    /// Stores a response, unless its URL was removed since a number of removals. A removal is noted before it is added
    /// here, so one that is noted later is made after this.
    func store(_ entry: StoreEntry, _ key: StoreKey, since count: Int, for work: Work) {
        let begins = state.withLock { state in
            removals.count(entry.response.key) == count && state.changes.add(.store(entry), to: key)
        }
        if begins { make(.store(entry), key, for: work) }
    }

    private func make(_ change: StoreChanges.Change, _ key: StoreKey, for work: Work) {
        let handle = LoadHandle(idle: nil, resource: nil, clock: work.handle.clock, leaked: work.handle.leaked)
        guard work.registry.enter(handle, inPlaceOf: work.handle) else {
            // The session has ended, and so has the use of what is kept here.
            return state.withLock { $0.changes.drop(key) }
        }
        Task(executorPreference: LoopPreference.current, priority: .utility) { [self] in
            var next: StoreChanges.Change? = change
            while let change = next {
                let isMade = await isMade(change, key, handle)
                let now = now()
                next = state.withLock { $0.changes.ended(key, isMade: isMade, now: now) }
            }
            work.registry.leave(handle)
        }
    }

    private typealias Record = (key: StoreKey, value: ResponseStoreValue, lifetime: Duration)

    /// Returns what is to be stored, in order; `nil` if a head is above the limit of records.
    private func records(_ change: StoreChanges.Change, _ key: StoreKey) -> [Record]? {
        guard case .store(let entry) = change else { return [] }
        var records: [Record] = []
        for (key, record, lifetime) in entry.records(key) {
            guard let value = record.value(for: key, signedWith: signingKey) else { return nil }
            records.append((key, value, lifetime))
        }
        return records
    }

    private func isMade(_ change: StoreChanges.Change, _ key: StoreKey, _ handle: LoadHandle) async -> Bool {
        // What is stored under the key stays there, so a removal that failed is still to be made.
        guard let records = records(change, key) else {
            count(\.left)
            return false
        }
        let outcome = await call(handle, settings.timeout) { [settings, removals] in
            switch change {
            case .remove: try await settings.store.removeValue(for: key.text)
            case .store(let entry):
                let count = removals.count(entry.response.key)
                for record in records {
                    try await settings.store.store(record.value, for: record.key.text, lifetime: record.lifetime)
                }
                // A call that was given up for being late may end after a removal that was made meanwhile. Its task is
                // cancelled then, so the removal has another.
                guard removals.count(entry.response.key) != count else { return }
                try await Task { try await settings.store.removeValue(for: key.text) }.value
            }
        }
        guard case .done = outcome else { return false }
        if case .remove = change { count(\.removed) } else { count(\.stored) }
        return true
    }

    // MARK: Calls

    private enum Outcome<Answer: Sendable>: Sendable {
        case done(Answer)
        /// The store has failed, or is late, or was not called.
        case none
        case stopped
    }

    /// Calls the program's store in a task of its own, and waits for it until a limit or the end of the work.
    private func call<Answer: Sendable>(
        _ handle: LoadHandle, _ limit: Duration, _ work: @escaping @Sendable () async throws -> Answer
    ) async -> Outcome<Answer> {
        guard state.withLock({ Self.begins(&$0, now: handle.clock.now()) }) else { return .none }
        let ending = await CallbackOutcome.run(handle, timeout: limit) { [self] () -> Answer? in
            let answer = try? await work()
            state.withLock { $0.running -= 1 }
            return answer
        }
        return state.withLock { state in
            let (outcome, circuit): (Outcome<Answer>, Circuit.Outcome)
            switch ending {
            case .answered(let answer?): (outcome, circuit) = (.done(answer), .success)
            case .answered(nil):
                (outcome, circuit) = (.none, .failure)
                state.counts.failed += 1
            case .late:
                (outcome, circuit) = (.none, .failure)
                state.counts.late += 1
            case .stopped: (outcome, circuit) = (.stopped, .none)
            }
            state.circuit.conclude(
                circuit, limit: Self.maximumFailures, pause: Self.pause, now: handle.clock.now())
            return outcome
        }
    }

    private static func begins(_ state: inout State, now: Int64) -> Bool {
        guard state.running < maximumRunning, state.circuit.admits(now: now) else {
            state.counts.skipped += 1
            return false
        }
        state.running += 1
        return true
    }
}
