// SPDX-License-Identifier: Apache-2.0

// The cookies of a store: selects those for a request, and evicts when there are too many. A value without a lock, a
// clock or a disk.

import FoundationEssentials
import URLLoadingWire

struct CookieTable: Sendable {
    /// The cookies by owner (a registrable domain, or a host outside of one), in the order in which they are sent.
    private var buckets: [String: [Cookie]] = [:]
    private(set) var count = 0
    let limits: CookieStore.Limits

    init(_ limits: CookieStore.Limits = CookieStore.Limits()) { self.limits = limits }

    /// The cookies that may be written to a file, without their times of use.
    private var persistent: [Cookie.Key: Persistent] {
        var found: [Cookie.Key: Persistent] = [:]
        for bucket in buckets.values {
            for cookie in bucket {
                if let expires = cookie.expires {
                    found[cookie.key] = Persistent(value: cookie.value, expires: expires, isSecure: cookie.isSecure)
                }
            }
        }
        return found
    }
    private struct Persistent: Sendable, Equatable {
        let value: String
        let expires: Date
        let isSecure: Bool
    }

    var all: [Cookie] { buckets.values.flatMap(\.self).sorted(by: Self.precedes) }

    /// Longer paths first, then older cookies (RFC 6265bis §5.8.3).
    private static func precedes(_ a: Cookie, _ b: Cookie) -> Bool {
        let (left, right) = (a.path.utf8.count, b.path.utf8.count)
        return left != right ? left > right : a.creationDate < b.creationDate
    }

    // MARK: Cookies for a request

    /// Calls `use` with each cookie for a request, in order; notes a use of the cookie if that returns true.
    mutating func forEach(for context: CookieContext, now: Date, _ use: (Cookie) -> Bool) {
        var found: String?
        var others: [String] = []
        forEachDomain(over: context) { domain in
            guard buckets[domain] != nil else { return }
            if found == nil { found = domain } else { others.append(domain) }
        }
        guard let found else { return }
        let path = context.path
        // One owner's domain does not contain another's, except for public suffixes with cookies of their own.
        guard others.isEmpty else {
            let cookies = ([found] + others).flatMap { buckets[$0] ?? [] }
                .filter { Self.matches($0, context, path, now) }.sorted(by: Self.precedes)
            for cookie in cookies where use(cookie) { touch(cookie, now) }
            return
        }
        guard let index = buckets.index(forKey: found) else { return }
        // In place: copying a cookie would count the references of its many strings.
        buckets.values[index].withUnsafeMutableBufferPointer { bucket in
            for place in bucket.indices {
                guard Self.matches(bucket[place], context, path, now), use(bucket[place]) else { continue }
                bucket[place].lastAccessDate = now
            }
        }
    }

    private mutating func touch(_ cookie: Cookie, _ now: Date) {
        let owner = Self.owner(of: cookie.domain)
        guard let place = buckets[owner]?.firstIndex(where: { $0.isSame(cookie) }) else { return }
        buckets[owner]?[place].lastAccessDate = now
    }

    /// Calls `body` with the host and every parent domain.
    private func forEachDomain(over context: CookieContext, _ body: (String) -> Void) {
        body(context.host)
        guard !context.isAddress else { return }
        var rest = Substring(context.host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.index(after: dot)...]
            body(String(rest))
        }
    }

    private static func matches(_ cookie: Cookie, _ context: CookieContext, _ path: ArraySlice<UInt8>, _ now: Date)
        -> Bool
    {
        guard
            cookie.isHostOnly
                ? cookie.domain == context.host
                : CookieScope.matches(domain: cookie.domain, host: context.host, hostIsAddress: context.isAddress)
        else { return false }
        guard !cookie.isSecure || context.isSecure, context.isSameSite || cookie.sameSite == Cookie.SameSite.none else {
            return false
        }
        // Most cookies have the path "/".
        let matchesEveryPath = cookie.path.utf8.count == 1 && path.first == UInt8(ascii: "/")
        return (matchesEveryPath || CookieScope.matches(path: cookie.path, requestPath: path)) && !cookie.isExpired(now)
    }

    // MARK: Setting and removing

    /// The effect of setting a cookie.
    struct Change: Sendable {
        /// The stored cookie; `nil` if it was not stored.
        var stored: Cookie?
        /// The cookies that were removed for it.
        var removed: [Cookie] = []
    }

    /// Stores a cookie in place of one with the same key, and evicts others if necessary (§5.7 steps 15 and 22).
    /// - Parameter isSecure: whether the cookie arrived over a secure connection; true for the caller's own.
    mutating func set(_ cookie: Cookie, isSecure: Bool, now: Date) -> Change {
        let owner = Self.owner(of: cookie.domain)
        var bucket = buckets[owner] ?? []
        // A cookie from plain http must not replace or shadow a secure one.
        if !cookie.isSecure, !isSecure, bucket.contains(where: { $0.isCovered(by: cookie) }) { return Change() }
        var cookie = cookie
        var change = Change()
        if let place = bucket.firstIndex(where: { $0.isSame(cookie) }) {
            // The cookie keeps the position of the one it replaces.
            cookie.creationDate = bucket[place].creationDate
            if cookie.isExpired(now) {
                change.removed = [bucket.remove(at: place)]
                count -= 1
            } else {
                bucket[place] = cookie
                change.stored = cookie
            }
        } else if !cookie.isExpired(now) {
            cookie.creationDate = Self.unique(cookie.creationDate, in: bucket)
            bucket.insert(cookie, at: bucket.firstIndex { Self.precedes(cookie, $0) } ?? bucket.count)
            count += 1
            change.stored = cookie
        }
        buckets[owner] = bucket.isEmpty ? nil : bucket
        if change.stored != nil { evict(owner, now, &change) }
        return change
    }

    /// Returns the first time from `creation` on that no other cookie of the bucket has: cookies that are set together
    /// keep their order, in the file as well.
    private static func unique(_ creation: Date, in bucket: [Cookie]) -> Date {
        var seconds = creation.timeIntervalSinceReferenceDate
        while seconds.isFinite, bucket.contains(where: { $0.creationDate.timeIntervalSinceReferenceDate == seconds }) {
            seconds = seconds.nextUp
        }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    /// Removes the cookie with the same key.
    mutating func remove(_ cookie: Cookie) -> Cookie? {
        let owner = Self.owner(of: cookie.domain)
        guard let place = buckets[owner]?.firstIndex(where: { $0.isSame(cookie) }) else { return nil }
        count -= 1
        let removed = buckets[owner]?.remove(at: place)
        if buckets[owner]?.isEmpty == true { buckets[owner] = nil }
        return removed
    }

    /// Removes all cookies that match.
    mutating func remove(where isUnwanted: (Cookie) -> Bool) -> [Cookie] {
        var removed: [Cookie] = []
        for owner in Array(buckets.keys) {
            guard let bucket = buckets[owner], bucket.contains(where: isUnwanted) else { continue }
            removed += bucket.filter(isUnwanted)
            let rest = bucket.filter { !isUnwanted($0) }
            buckets[owner] = rest.isEmpty ? nil : rest
        }
        count -= removed.count
        return removed
    }

    /// Replaces the persistent cookies by those of the file. Session cookies and times of use stay.
    mutating func replacePersistent(with cookies: [Cookie], now: Date) -> PersistedReplacement<Cookie> {
        let before = persistent
        var used: [Cookie.Key: Date] = [:]
        for cookie in remove(where: { $0.expires != nil }) { used[cookie.key] = cookie.lastAccessDate }
        for cookie in cookies where !cookie.isExpired(now) {
            var cookie = cookie
            if let date = used[cookie.key] { cookie.lastAccessDate = max(date, cookie.lastAccessDate) }
            let owner = Self.owner(of: cookie.domain)
            if let place = buckets[owner]?.firstIndex(where: { $0.isSame(cookie) }) {
                buckets[owner]?.remove(at: place)
                count -= 1
            }
            let place = buckets[owner]?.firstIndex { Self.precedes(cookie, $0) }
            buckets[owner, default: []].insert(cookie, at: place ?? buckets[owner]?.count ?? 0)
            count += 1
        }
        var change = Change()
        for (owner, bucket) in buckets where bucket.count > limits.perDomain { evict(owner, now, &change) }
        if count > limits.total, let owner = buckets.keys.first { evict(owner, now, &change) }
        return PersistedReplacement(
            removed: change.removed.filter { $0.expires != nil }, hasChanged: persistent != before)
    }

    // MARK: Eviction

    /// Evicts expired cookies first; then, of an owner with too many, those that are not secure; then any; each time
    /// the least recently used one (§5.7).
    private mutating func evict(_ owner: String, _ now: Date, _ change: inout Change) {
        if let bucket = buckets[owner], bucket.count > limits.perDomain {
            var going = Self.leaving(bucket, bucket.count - limits.perDomain, now, sparesSecure: true)
            note(&going, &change)
        }
        guard count > limits.total else { return }
        // Evicts a tenth at once, so that the search over all cookies is rare.
        var going = Self.leaving(all, max(count - limits.total, limits.total / 10), now, sparesSecure: false)
        note(&going, &change)
    }

    private mutating func note(_ going: inout [Cookie], _ change: inout Change) {
        for cookie in going {
            guard let removed = remove(cookie) else { continue }
            if let stored = change.stored, removed.isSame(stored) { change.stored = nil }
            change.removed.append(removed)
        }
    }

    private static func leaving(_ cookies: [Cookie], _ least: Int, _ now: Date, sparesSecure: Bool) -> [Cookie] {
        let expired = cookies.filter { $0.isExpired(now) }
        guard expired.count < least else { return expired }
        func comesFirst(_ a: Cookie, _ b: Cookie) -> Bool {
            if sparesSecure, a.isSecure != b.isSecure { return !a.isSecure }
            return a.lastAccessDate != b.lastAccessDate
                ? a.lastAccessDate < b.lastAccessDate : a.creationDate < b.creationDate
        }
        return expired + cookies.filter { !$0.isExpired(now) }.sorted(by: comesFirst).prefix(least - expired.count)
    }

    /// Returns the owner of a domain. A name whose last label is numeric is an address, and its own owner
    /// (`Origin.Host`).
    private static func owner(of domain: String) -> String {
        let isAddress =
            domain.utf8.first == UInt8(ascii: "[")
            || domain.split(separator: ".").last.map { $0.utf8.allSatisfy { $0 &- 0x30 < 10 } } ?? false
        return isAddress ? domain : PublicSuffixes.registrableDomain(of: domain)
    }
}

extension Cookie {
    fileprivate func isSame(_ other: Cookie) -> Bool {
        name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
    }

    /// Whether this cookie is secure, and a server could take another one for it (§5.7 step 15).
    fileprivate func isCovered(by other: Cookie) -> Bool {
        guard isSecure, name == other.name else { return false }
        let (own, its) = (domain, other.domain)
        guard own == its || own.hasSuffix("." + its) || its.hasSuffix("." + own) else { return false }
        return CookieScope.matches(path: path, requestPath: other.path.utf8)
    }
}
