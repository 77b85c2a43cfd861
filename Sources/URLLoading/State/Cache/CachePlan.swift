// SPDX-License-Identifier: Apache-2.0

// In this folder: what may be stored and what may answer a request, decided as values

// Decides whether a stored response may answer a request, and otherwise how to use what is stored: RFC 9111 §4, RFC
// 5861, RFC 8246. Pure: every input is passed in, including the time. A plan describes itself and its reason, for logs.

import URLLoadingWire

enum CachePlan: Sendable {
    /// The stored response answers.
    case stored(StoredResponse, CacheReason)
    /// The stored response answers, and a refresh runs in the background (RFC 5861 §3).
    case storedAndRefresh(StoredResponse, CacheReason)
    /// The server is asked whether the stored response is still valid.
    case validate(StoredResponse, CacheReason)
    /// The server is asked for the missing end of a partial response.
    case complete(StoredResponse, CacheReason)
    /// The server is asked for the complete response. The stale one may answer if the server fails (RFC 5861 §4).
    case network(CacheReason, stale: StoredResponse? = nil)
    /// The network may not be used, and no stored response fits.
    case refused(CacheReason)

    static func make(_ query: CacheQuery, _ variants: [StoredResponse], now: Double) -> CachePlan {
        let control = query.control
        let isOffline = query.policy == .onlyIfCached || control.flags.contains(.onlyIfCached)
        func without(_ reason: CacheReason) -> CachePlan { isOffline ? .refused(reason) : .network(reason) }

        if let reason = reasonWithoutLookUp(query, control) { return without(reason) }
        let found: StoredResponse
        switch select(query, variants) {
        case .failure(let reason): return without(reason.why)
        case .success(let stored): found = stored
        }
        if let reason = unusableReason(found, query) { return without(reason) }
        if query.policy.acceptsAnyAge {
            return found.isWhole
                ? .stored(found, .policy(query.policy)) : isOffline ? .refused(.beginning) : completion(of: found)
        }
        return evaluate(found, query, control, now: now, isOffline: isOffline)
    }

    /// Returns why no stored response can answer a request, whatever is stored; `nil` without such a reason.
    static func reasonWithoutLookUp(_ query: CacheQuery, _ control: CacheControl) -> CacheReason? {
        switch query.policy {
        case .reload, .reloadIgnoringCaches: return .policy(query.policy)
        case .useProtocol, .revalidate, .cacheElseLoad, .onlyIfCached: break
        }
        guard query.request.method == .get || query.isHead, query.request.body == nil else { return .method }
        if query.isConditional { return .conditional }
        // §5.2.1.5 only forbids storing; a request with no-store is not answered from the cache either.
        return control.flags.contains(.noStore) ? .request("no-store") : nil
    }

    struct NoVariant: Error {
        let why: CacheReason
    }

    /// Selects the variant that matches (§4.1). Of several, a variant with an owner (login or cookies) precedes a
    /// public one, then the most recently generated one wins.
    static func select(_ query: CacheQuery, _ variants: [StoredResponse]) -> Result<StoredResponse, NoVariant> {
        var best: StoredResponse?
        var different: String?
        for variant in variants {
            if let name = Varying.mismatch(variant, query) {
                different = different ?? name
            } else if let known = best {
                if variant.isBetter(than: known) { best = variant }
            } else {
                best = variant
            }
        }
        if let best { return .success(best) }
        return .failure(NoVariant(why: different.map { .vary($0) } ?? .nothing))
    }

    /// Returns why a stored response cannot answer a range request: only undecoded bytes have the server's offsets (RFC
    /// 9110 §14.2).
    private static func unusableReason(_ stored: StoredResponse, _ query: CacheQuery) -> CacheReason? {
        guard query.hasFields, query.request.headers.contains(.range), !query.isHead else { return nil }
        guard stored.isWhole, !stored.isDecoded, stored.status == .ok, stored.part(query.request.headers) != nil else {
            return .range
        }
        return nil
    }

    private static func evaluate(
        _ stored: StoredResponse, _ query: CacheQuery, _ control: CacheControl, now: Double, isOffline: Bool
    ) -> CachePlan {
        let rules = stored.knownRules
        let age = rules.age(now)
        func ask(_ reason: CacheReason) -> CachePlan {
            if isOffline { return .refused(reason) }
            guard stored.isWhole else { return completion(of: stored) }
            // Validating would request the same part twice if the response has changed.
            guard rules.hasValidator, !query.hasFields || !query.request.headers.contains(.range) else {
                return .network(reason, stale: stored)
            }
            return .validate(stored, reason)
        }
        guard stored.isWhole || query.isHead else { return isOffline ? .refused(.beginning) : completion(of: stored) }

        let isFresh = age < rules.lifetime
        // RFC 8246 §2: an immutable response is not revalidated by a reload.
        if isFresh, rules.control.flags.contains(.immutable), !rules.control.flags.contains(.noCache),
            query.policy == .revalidate || control.maxAge == 0,
            !control.flags.contains(.noCache)
        {
            return .stored(stored, .immutable)
        }
        if query.policy == .revalidate { return ask(.policy(.revalidate)) }
        if control.flags.contains(.noCache) { return ask(.request("no-cache")) }
        if rules.control.flags.contains(.noCache) { return ask(.noCache) }
        if let maxAge = control.maxAge, age > Double(maxAge) { return ask(.tooOld(age, "max-age=\(maxAge)")) }
        if let minFresh = control.minFresh, rules.lifetime - age < Double(minFresh) {
            return ask(.tooOld(age, "min-fresh=\(minFresh)"))
        }
        if isFresh { return .stored(stored, .fresh(age, rules.lifetime, rules.source)) }

        // §4.2.4: from here on the response is stale.
        let excess = age - rules.lifetime
        if rules.control.flags.contains(.mustRevalidate) { return ask(.mustRevalidate(age, rules.lifetime)) }
        if control.flags.contains(.anyStale) || excess <= Double(control.maxStale ?? -1) {
            return .stored(stored, .maxStale(age, rules.lifetime))
        }
        if let window = rules.control.staleWhileRevalidate, excess <= Double(window), !isOffline {
            return .storedAndRefresh(stored, .staleWhileRevalidate(age, rules.lifetime))
        }
        return ask(.stale(age, rules.lifetime))
    }

    /// Plans the request for the missing bytes; only a strong tag proves that the stored bytes are unchanged (RFC 9110
    /// §13.1.5).
    private static func completion(of stored: StoredResponse) -> CachePlan {
        stored.canBeCompleted ? .complete(stored, .beginning) : .network(.beginning)
    }

    /// RFC 5861 §4: whether a stale response may stand in for a failure.
    static func mayServeStale(_ stored: StoredResponse, _ query: CacheQuery, now: Double) -> Bool {
        let rules = stored.knownRules
        // Few messages allow it, so that is checked first.
        guard let window = query.control.staleIfError ?? rules.control.staleIfError, stored.isWhole,
            query.policy == .useProtocol
        else { return false }
        let flags = rules.control.flags
        guard !flags.contains(.mustRevalidate), !flags.contains(.noCache), !query.control.flags.contains(.noCache)
        else { return false }
        return rules.age(now) - rules.lifetime <= Double(window)
    }

    var reason: CacheReason {
        switch self {
        case .stored(_, let reason), .storedAndRefresh(_, let reason), .validate(_, let reason),
            .complete(_, let reason),
            .network(let reason, _), .refused(let reason):
            reason
        }
    }
}

/// The reason for a cache's decision.
enum CacheReason: Sendable, CustomStringConvertible {
    case fresh(Double, Double, CacheRules.Source)
    case immutable
    case stale(Double, Double)
    case mustRevalidate(Double, Double)
    case maxStale(Double, Double)
    case staleWhileRevalidate(Double, Double)
    case tooOld(Double, String)
    case policy(Request.CachePolicy)
    case request(String)
    case noCache
    case nothing
    case vary(String)
    case method
    case conditional
    case range
    case beginning
    case gone

    var description: String {
        switch self {
        case .fresh(let age, let lifetime, .heuristic):
            "fresh by heuristics: age \(seconds(age)) of \(seconds(lifetime))"
        case .fresh(let age, let lifetime, _): "fresh: age \(seconds(age)) of \(seconds(lifetime))"
        case .immutable: "immutable, and fresh"
        case .stale(let age, let lifetime): "stale: age \(seconds(age)) of \(seconds(lifetime))"
        case .mustRevalidate(let age, let lifetime): "must-revalidate: age \(seconds(age)) of \(seconds(lifetime))"
        case .maxStale(let age, let lifetime): "max-stale allows it: age \(seconds(age)) of \(seconds(lifetime))"
        case .staleWhileRevalidate(let age, let lifetime):
            "stale-while-revalidate: age \(seconds(age)) of \(seconds(lifetime))"
        case .tooOld(let age, let wanted): "age \(seconds(age)), but the request says \(wanted)"
        case .policy(let policy): "policy \(policy)"
        case .request(let directive): "the request says \(directive)"
        case .noCache: "the response says no-cache"
        case .nothing: "nothing stored"
        case .vary(Varying.identity), .vary(CacheOwner.cookies), .vary(CacheOwner.ownCookie): "stored for another owner"
        case .vary(CacheOwner.host): "stored with another Host field"
        case .vary(CacheOwner.route): "stored through another session's resolver or proxies"
        case .vary(CacheOwner.address): "stored from an address that the policy refuses, or that is not known"
        case .vary(CacheOwner.trust): "stored with other TLS trust settings"
        case .vary(let name): "vary: \(name) differs"
        case .method: "only GET and HEAD are answered"
        case .conditional: "the request is conditional"
        case .range: "the stored response does not have the range"
        case .beginning: "only the beginning is stored"
        case .gone: "the stored response was removed"
        }
    }

    private func seconds(_ duration: Double) -> String {
        duration.isFinite ? "\(Int64(min(max(duration, 0), 1e15))) s" : "unknown"
    }
}

extension CachePlan: CustomStringConvertible {
    /// `stored (fresh: age 12 s of 60 s)`.
    var description: String {
        let word =
            switch self {
            case .stored: "stored"
            case .storedAndRefresh: "stored, and refreshed"
            case .validate: "validate"
            case .complete: "complete"
            case .network: "network"
            case .refused: "refused"
            }
        return "\(word) (\(reason))"
    }
}

extension StoredResponse {
    var isOwned: Bool { !varying.isEmpty && (varying[Varying.identity] != nil || varying[CacheOwner.cookies] != nil) }

    /// When the server generated the response. A Date in the future is capped at the arrival, or the response would
    /// stay the newest for ever.
    private var made: Double { headers.date(.date).map { min($0, responseTime) } ?? responseTime }

    fileprivate func isBetter(than other: StoredResponse) -> Bool {
        if isOwned != other.isOwned { return isOwned }
        return made != other.made ? made > other.made : responseTime > other.responseTime
    }

    /// The strong entity tag, which changes with every byte (RFC 9110 §8.8.1); nil without one.
    var strongTag: EntityTag? {
        guard let tag = EntityTag(in: headers), !tag.isWeak else { return nil }
        return tag
    }

    var canBeCompleted: Bool {
        guard case .beginning(let count, _) = extent else { return false }
        return count > 0 && !isDecoded && strongTag != nil
    }

    /// The single range that a Range field asks for; `nil` for several ranges, for no field, and for an invalid one.
    func part(_ request: Headers) -> Range<Int64>? {
        guard case .whole(let length) = extent, let text = request[.range], let ranges = ByteRange.parse(text),
            ranges.count == 1
        else { return nil }
        return ranges[0].resolved(for: length)
    }
}
