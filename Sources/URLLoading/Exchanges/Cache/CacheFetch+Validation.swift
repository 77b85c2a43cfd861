// SPDX-License-Identifier: Apache-2.0

// Validation of stored responses (RFC 9111 §4.3), completion of partial ones (§3.4), and the effects of HEAD and of
// unsafe methods on them (§4.3.5, §4.4).

import URLLoadingIO
import URLLoadingWire

extension CacheFetch {
    // MARK: Conditions (RFC 9111 §4.3)

    func validate(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        // The open body stays readable from here on, even if the entry is removed during validation.
        guard let body = try await open(stored) else { return try await load(hop, shared) }
        var asked = hop
        asked.request.addCondition(of: stored)
        let removals = cache.storage.removals.count(key)
        let exchange: any NetworkExchange
        do throws(LoadError) { exchange = try await HTTPHandler.exchange(asked, for: load) } catch {
            guard mayServeStale(stored, for: error) else { throw error }
            return serve(stored, body)
        }
        guard let head = exchange.head else { return exchange }
        if head.status == .notModified {
            // Read before the release: a released connection may serve another exchange.
            let provenance = exchange.provenance
            let isSame = isServer(of: stored, exchange)
            exchange.release()
            guard stored.canBeUpdated(by: head) else {
                // The 304 refers to a representation that is not stored.
                if !provenance.isRepaired, mayRemove(provenance.isForced) { cache.storage.remove(stored) }
                return try await load(hop, shared)
            }
            // The updated response is not kept if only a decision trusts the server, or if the server's certificate
            // differs from that of the stored response. An answer to one owner changes nothing that is stored for other
            // owners, and one with faults changes nothing that is stored.
            if !isSame, !provenance.isRepaired, mayRemove(provenance.isForced) { cache.storage.remove(stored) }
            let updated = stored.updated(
                by: head, from: provenance.source, requestTime: exchange.requestTime, responseTime: cache.now())
            let isKept =
                isSame && !setsCookiesOutside(head) && query.isForOwner(of: stored, provenance)
                && renew(stored, updated)
            shared?.settle(isKept ? .stored : .unstorable)
            return serve(
                updated, body, besides: isKept ? nil : AnswerMarks(provenance, to: query), head.tolerated)
        }
        if head.status.isFailure, CachePlan.mayServeStale(stored, query, now: cache.now()) {
            exchange.release()
            return serve(stored, body)
        }
        if query.isHead { return headed(exchange, stored) }
        return keep(exchange, removals, shared)
    }

    /// A server that only a decision trusts removes nothing that others share.
    private func mayRemove(_ isForced: Bool) -> Bool { !(isForced && cache.asked != nil) }

    /// Whether an answer that sets cookies, and so may be for one user, would change what others share.
    private func setsCookiesOutside(_ head: HTTPHead) -> Bool {
        cache.asked != nil && head.headers.contains(.setCookie)
    }

    /// Stores the updated head, unless the new fields forbid storing, or the response now varies differently from
    /// before.
    private func renew(_ stored: StoredResponse, _ updated: StoredResponse) -> Bool {
        let flags = updated.knownRules.control.flags
        guard !flags.contains(.noStore) || flags.contains(.mustUnderstand),
            var varying = Varying.make(updated.headers, query)
        else {
            cache.storage.remove(stored)
            return false
        }
        for name in CacheOwner.names { varying[name] = stored.varying[name] }
        guard varying == stored.varying else {
            cache.storage.remove(stored)
            return false
        }
        cache.storage.update(updated)
        return true
    }

    /// Loads a response that has no validator; the stale one stands in if the server fails (RFC 5861 §4).
    func loadOrServeStale(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        let removals = cache.storage.removals.count(key)
        let exchange: any NetworkExchange
        do throws(LoadError) { exchange = try await HTTPHandler.exchange(hop, for: load) } catch {
            guard mayServeStale(stored, for: error), let body = try await open(stored) else { throw error }
            return serve(stored, body)
        }
        if exchange.head?.status.isFailure == true, let body = try await open(stored) {
            exchange.release()
            return serve(stored, body)
        }
        if query.isHead { return headed(exchange, stored) }
        return keep(exchange, removals, shared)
    }

    /// Whether the stored response stands in for a failure of the server or the network. A silent server has failed as
    /// well: the idle stop is revoked, as for a retry. Other stops are the caller's.
    private func mayServeStale(_ stored: StoredResponse, for error: LoadError) -> Bool {
        let isTimeout = error.reason == .idleTimeout || error.reason == .connectTimeout
        guard error.party != .local,
            isTimeout || [.resolving, .connecting, .sending, .waiting].contains(error.phase),
            CachePlan.mayServeStale(stored, query, now: cache.now())
        else { return false }
        return load.mayRetry()
    }

    // MARK: Partial responses (RFC 9111 §3.4)

    func complete(_ stored: StoredResponse, _ shared: SharedFetch?) async throws(LoadError) -> any Exchange {
        guard let tag = stored.strongTag, stored.mayBeCompleted, let body = try await open(stored), body.length > 0
        else {
            return try await load(hop, shared)
        }
        var asked = hop
        asked.request.headers[.range] = "bytes=\(body.length)-"
        tag.append(to: &asked.request.headers, as: .ifRange)
        let removals = cache.storage.removals.count(key)
        let exchange = try await HTTPHandler.exchange(asked, for: load)
        guard let head = exchange.head else { return exchange }
        switch head.status {
        case .partialContent:
            let provenance = exchange.provenance
            let updated = stored.updated(
                by: head, from: provenance.source, requestTime: exchange.requestTime, responseTime: cache.now())
            guard query.isForOwner(of: stored, provenance), isServer(of: stored, exchange),
                let whole = stored.completed(by: head, at: body.length), let writer = cache.storage.append(to: updated)
            else { break }
            var complete = stored
            (complete.extent, complete.source) = (.beginning(body.length, of: whole), updated.source)
            let tee = CacheTee(
                exchange, for: load, .init(stored: complete, cache: cache, writer: writer, shared: shared))
            let answer = HTTPHead(updated, updated.headers)
            let first = CachedExchange(
                .init(head: answer, body: body, stored: stored, part: 0..<body.length), to: hop.request, for: load,
                length: whole)
            return ConcatenatedExchange(answer, first, tee, length: whole)
        case .rangeNotSatisfiable: break
        default: return keep(exchange, removals, shared)
        }
        // The server has another representation than the stored one, or the stored part and the received one cannot be
        // combined: load the whole response.
        exchange.release()
        if head.tolerated.isEmpty { cache.storage.remove(stored) }
        return try await load(hop, shared)
    }

    // MARK: Other methods

    @inline(never)
    func other() async throws(LoadError) -> any Exchange {
        guard query.isHead, query.request.body == nil else { return try await forward() }
        let plan = plan(try await variants())
        switch plan {
        case .network(_, let stale):
            let exchange = try await HTTPHandler.exchange(hop, for: load)
            var known = stale
            if known == nil, case .success(let found) = CachePlan.select(query, try await variants()) { known = found }
            return known.map { headed(exchange, $0) } ?? exchange
        case .complete(let stored, _):
            // The head of a partial response is complete, so HEAD does not fetch the missing bytes.
            return headed(try await HTTPHandler.exchange(hop, for: load), stored)
        default: return try await act(plan)
        }
    }

    /// Updates or invalidates the stored response to GET by the answer to HEAD (RFC 9111 §4.3.5).
    private func headed(_ exchange: any NetworkExchange, _ stored: StoredResponse) -> any Exchange {
        // A head with faults may lack a field that could not be read.
        guard let head = exchange.head, head.status == .ok, !query.isConditional, !exchange.isForced,
            head.tolerated.isEmpty
        else { return exchange }
        let length = head.headers[.contentLength]
        let isSame =
            isServer(of: stored, exchange) && stored.canBeUpdated(by: head)
            && (length == nil || length == stored.headers[.contentLength])
            && (!stored.headers.contains(.etag) || head.headers.contains(.etag))
            && (!stored.headers.contains(.lastModified) || head.headers.contains(.lastModified))
        if !isSame {
            cache.storage.remove(stored)
        } else if !setsCookiesOutside(head), query.isForOwner(of: stored, exchange.provenance) {
            _ = renew(
                stored,
                stored.updated(
                    by: head, from: exchange.source, requestTime: exchange.requestTime, responseTime: cache.now()))
        }
        return exchange
    }

    /// Sends a request that no cache answers, and removes the stored responses that it invalidates (RFC 9111 §4.4).
    private func forward() async throws(LoadError) -> any Exchange {
        if case .refused(let reason) = plan([]) { throw .notInCache(hop.request, "\(reason)") }
        let exchange = try await HTTPHandler.exchange(hop, for: load)
        if let head = exchange.head, mayRemove(exchange.isForced) {
            for key in StoringPlan.invalidated(hop.request, head, host: query.host) { cache.storage.remove(key) }
        }
        return exchange
    }
}

extension Request {
    /// RFC 9111 §4.3.1: sends the entity tag, and also the date for servers that ignore tags.
    fileprivate mutating func addCondition(of stored: StoredResponse) {
        if let tag = EntityTag(in: stored.headers) { tag.append(to: &headers, as: .ifNoneMatch) }
        if stored.headers.date(.lastModified) != nil, let text = stored.headers.values(of: .lastModified).first {
            headers[.ifModifiedSince] = text
        }
    }
}

extension StoredResponse {
    /// Returns the complete length if an answer continues the stored beginning: the same strong tag, and all missing
    /// bytes.
    fileprivate func completed(by head: HTTPHead, at offset: Int64) -> Int64? {
        guard head.headers.count(of: .contentRange) == 1, let text = head.headers[.contentRange],
            case .part(let range, let whole?)? = ContentRange(text), range.lowerBound == offset,
            range.upperBound == whole,
            !head.headers.contains(.contentEncoding), EntityTag(in: head.headers)?.matchesStrongly(strongTag) == true
        else { return nil }
        if case .beginning(_, let known?) = extent, known != whole { return nil }
        return whole
    }
}

extension Status {
    /// The statuses that RFC 5861 §4 calls an error.
    fileprivate var isFailure: Bool { [500, 502, 503, 504].contains(code) }
}
