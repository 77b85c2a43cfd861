// SPDX-License-Identifier: Apache-2.0

// The cookies of a store, under its lock, and the changes that its file must still receive.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class CookieMemory: StateMemory {
    typealias Schema = CookieSchema

    private struct State: Sendable {
        var table: CookieTable
        var pending = Pending()
        var listeners: [ObjectIdentifier: ChangeListener] = [:]
    }
    private let state: Lock<State>
    private let hasFile: Bool
    /// The number of cookies, read without a lock: a request costs no more than this while the store is empty.
    private let held = Atomic<Int>(0)
    /// The precision of the last access in the file, in seconds.
    private static let accessGrain: TimeInterval = 86400

    init(_ limits: CookieStore.Limits, hasFile: Bool) {
        state = Lock(State(table: CookieTable(limits)))
        self.hasFile = hasFile
    }

    var count: Int { held.load(ordering: .relaxed) }
    var all: [Cookie] { state.withLock { $0.table.all } }
    var hasPending: Bool { state.withLock { !$0.pending.isEmpty } }

    /// Calls `use` with the matching cookies. Returns whether the file must be written.
    func forEach(for context: CookieContext, now: Date, _ use: (Cookie) -> Bool) -> Bool {
        guard count > 0 else { return false }
        return state.withLock { state in
            var stale: [Cookie] = []
            state.table.forEach(for: context, now: now) { cookie in
                guard use(cookie) else { return false }
                if hasFile, cookie.expires != nil, now.timeIntervalSince(cookie.lastAccessDate) > Self.accessGrain {
                    stale.append(cookie)
                }
                return true
            }
            for var cookie in stale {
                cookie.lastAccessDate = now
                state.pending.note(cookie, for: cookie.key)
            }
            return !stale.isEmpty
        }
    }

    /// Sets cookies, and returns those that were stored.
    func set(_ cookies: [Cookie], isSecure: Bool, now: Date) -> [Cookie] {
        let (stored, listeners) = state.withLock { state in
            var stored: [Cookie] = []
            var hasChanged = false
            for cookie in cookies {
                let change = state.table.set(cookie, isSecure: isSecure, now: now)
                hasChanged = hasChanged || change.stored != nil || !change.removed.isEmpty
                if hasFile {
                    for removed in change.removed where removed.expires != nil {
                        state.pending.set(nil, for: removed.key)
                    }
                    // A persistent cookie that becomes a session cookie leaves the file.
                    if let new = change.stored { state.pending.set(new.expires == nil ? nil : new, for: new.key) }
                }
                if let new = change.stored { stored.append(new) }
            }
            return (stored, told(&state, hasChanged))
        }
        for listener in listeners { listener.process(.cookies) }
        return stored
    }

    func remove(_ cookie: Cookie) -> Bool {
        let (isGone, listeners) = state.withLock { state in
            let removed = state.table.remove(cookie)
            if hasFile, let removed { state.pending.set(nil, for: removed.key) }
            return (removed != nil, told(&state, removed != nil))
        }
        for listener in listeners { listener.process(.cookies) }
        return isGone
    }

    func removeAll(since moment: Date) {
        let listeners = state.withLock { state in
            let removed = state.table.remove { $0.creationDate >= moment }
            if hasFile {
                for cookie in removed { state.pending.set(nil, for: cookie.key) }
                state.pending.clear(since: moment.timeIntervalSinceReferenceDate)
            }
            return told(&state, !removed.isEmpty)
        }
        for listener in listeners { listener.process(.cookies) }
    }

    private func told(_ state: inout State, _ hasChanged: Bool) -> [ChangeListener] {
        held.store(state.table.count, ordering: .relaxed)
        return hasChanged ? Array(state.listeners.values) : []
    }

    // MARK: Observers

    func add(_ listener: ChangeListener) { state.withLock { $0.listeners[ObjectIdentifier(listener)] = listener } }
    func remove(_ listener: ChangeListener) { state.withLock { $0.listeners[ObjectIdentifier(listener)] = nil } }
    func policyChanged() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.process(.acceptPolicy) }
    }

    // MARK: The file

    func takePending() -> Pending { state.withLock { $0.pending.take() } }
    func restore(_ pending: Pending) { state.withLock { $0.pending.restore(pending) } }

    func rememberAll() {
        state.withLock { state in
            for cookie in state.table.all where cookie.expires != nil { state.pending.set(cookie, for: cookie.key) }
        }
    }

    func replace(with rows: [Cookie]) {
        let now = Date.now
        let listeners = state.withLock { state in
            let before = state.table.persistent
            var rows = rows
            if let moment = state.pending.clearedSince {
                rows.removeAll { $0.creationDate.timeIntervalSinceReferenceDate >= moment }
            }
            if !state.pending.rows.isEmpty { rows.removeAll { state.pending.rows[$0.key] != nil } }
            rows += state.pending.rows.values.compactMap(\.self)
            for cookie in state.table.replacePersistent(with: rows, now: now) where cookie.expires != nil {
                state.pending.set(nil, for: cookie.key)
            }
            return told(&state, state.table.persistent != before)
        }
        for listener in listeners { listener.process(.cookies) }
    }
}
