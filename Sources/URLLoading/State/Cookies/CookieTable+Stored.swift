// SPDX-License-Identifier: Apache-2.0

// The changes of a cookie store: what each does to the table, to the file, and to the observers.

import FoundationEssentials
import URLLoadingIO

extension CookieTable: PersistedTable {
    typealias Schema = CookieSchema
    var persistentRows: [Cookie] { all.filter { $0.expires != nil } }
}

extension Cookie: PersistedRow {}

extension TableState<CookieTable> {
    /// The day of a use, of which the file learns the first one: of each use it would be written too often.
    private static func day(_ date: Date) -> Double { (date.timeIntervalSinceReferenceDate / 86400).rounded(.down) }

    /// Calls `use` with the matching cookies, and notes their use.
    mutating func forEach(for context: CookieContext, now: Date, _ use: (Cookie) -> Bool) {
        var stale: [Cookie] = []
        let hasFile = pending != nil
        let today = Self.day(now)
        table.forEach(for: context, now: now) { cookie in
            guard use(cookie) else { return false }
            if hasFile, cookie.expires != nil, Self.day(cookie.lastAccessDate) != today { stale.append(cookie) }
            return true
        }
        for var cookie in stale {
            cookie.lastAccessDate = now
            pending?.note(cookie, for: cookie.key)
        }
    }

    /// Returns the cookie as it was stored; `nil` if it was not.
    mutating func set(_ cookie: Cookie, isSecure: Bool, now: Date) -> Cookie? {
        let change = table.set(cookie, isSecure: isSecure, now: now)
        hasObservableChange = hasObservableChange || change.stored != nil || !change.removed.isEmpty
        for removed in change.removed where removed.expires != nil { pending?.set(nil, for: removed.key) }
        // A persistent cookie that becomes a session cookie leaves the file.
        if let new = change.stored { pending?.set(new.expires == nil ? nil : new, for: new.key) }
        // Another process may have stored what this one has not read yet. Only a secure response may remove a secure
        // cookie, and without the cookie it is not known whether that is one.
        if isSecure, cookie.isExpired(now) { pending?.set(nil, for: cookie.key) }
        return change.stored
    }

    /// Returns whether there was such a cookie.
    mutating func remove(_ cookie: Cookie) -> Bool {
        // Also without one in memory: another process may have stored it, and this one has not read it yet.
        pending?.set(nil, for: cookie.key)
        guard table.remove(cookie) != nil else { return false }
        hasObservableChange = true
        return true
    }

    mutating func removeAll(since moment: Date) {
        let removed = table.remove { $0.creationDate >= moment }
        for cookie in removed { pending?.set(nil, for: cookie.key) }
        pending?.clear(since: moment.timeIntervalSinceReferenceDate)
        hasObservableChange = !removed.isEmpty
    }
}
