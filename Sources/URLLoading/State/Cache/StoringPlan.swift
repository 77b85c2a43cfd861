// SPDX-License-Identifier: Apache-2.0

// Decides whether and how a response is stored (RFC 9111 §3), how a 304 updates it (§3.2, §4.3.4), and what an unsafe
// method invalidates (§4.4). Pure.

import FoundationEssentials
import URLLoadingWire

enum StoringPlan {
    /// The facts about an exchange beside its head.
    struct Facts: Sendable {
        var requestTime: Double
        var responseTime: Double
        /// The content coding was decoded.
        var isDecoded = false
        /// The owner, as far as the request's fields do not show it, and the source.
        var provenance = Provenance()
    }

    /// - Returns: the response to store, without its body; `nil` if it may not or need not be stored.
    static func make(_ query: CacheQuery, _ key: CacheKey, _ head: HTTPHead, _ facts: Facts) -> StoredResponse? {
        guard query.request.method == .get, query.request.body == nil else { return nil }
        let control = CacheControl(head.headers)
        guard isPermitted(head, control, query) else { return nil }
        guard var varying = Varying.make(head.headers, query) else { return nil }
        guard query.mark(&varying, facts.provenance) else { return nil }
        var stored = StoredResponse(
            key: key, url: key.text, status: head.status, version: head.version, headers: head.headers.kept(control),
            varying: varying, requestTime: facts.requestTime, responseTime: facts.responseTime)
        (stored.isDecoded, stored.source) = (facts.isDecoded, facts.provenance.source)
        if head.status == .partialContent, !stored.becomeBeginning() { return nil }
        // If Cache-Control itself is not stored, it must not govern later uses either.
        let isKept = !control.isPresent || stored.headers.contains(.cacheControl)
        let rules = CacheRules(
            stored.status, stored.headers, isKept ? control : CacheControl(), requestTime: facts.requestTime,
            responseTime: facts.responseTime)
        // A response that no later process or session can use does not go to disk.
        stored.isMemoryOnly = !rules.isReusable || CacheOwner.isTemporary(varying)
        stored.rules = rules
        return stored
    }

    /// Whether a response could answer a later request like this one. Decided by its fields, before any of it is
    /// copied: most responses that no cache can use have none of them.
    static func isUsable(_ head: HTTPHead, for query: CacheQuery) -> Bool {
        let headers = head.headers
        if headers.contains(anyOf: lifetimesAndValidators) { return true }
        if head.status == .movedPermanently || head.status == .permanentRedirect { return true }
        if headers.contains(.cacheControl) {
            let control = CacheControl(headers)
            if control.maxAge ?? 0 > 0 || control.sharedMaxAge ?? 0 > 0 || control.staleWhileRevalidate != nil
                || control.staleIfError != nil
            {
                return true
            }
        }
        return query.acceptsAnyAge
    }

    private static let lifetimesAndValidators = FieldNameSet([.etag, .lastModified, .expires])

    /// Whether a response ends the use of what is stored for its request, although it is not stored itself.
    static func endsUse(_ head: HTTPHead, for query: CacheQuery) -> Bool {
        let control = CacheControl(head.headers)
        if head.status == .ok, control.flags.contains(.noStore), !query.isConditional { return true }
        return !isUsable(head, for: query) && isPermitted(head, control, query)
    }

    private static func isPermitted(_ head: HTTPHead, _ control: CacheControl, _ query: CacheQuery) -> Bool {
        switch head.status.code {
        // A part is stored only if it is a beginning; see `becomeBeginning`. Parts of conditional requests are not
        // stored.
        case 206: guard query.request.headers.contains(.range), !query.isConditional else { return false }
        // Answers to a condition, a range or a missing credential do not represent the resource.
        case ..<200, 304, 401, 407, 412, 416: return false
        default: break
        }
        // §5.2.2.3: a response with must-understand may be stored if its status is understood.
        let isUnderstood = control.flags.contains(.mustUnderstand) && !head.status.reasonPhrase.isEmpty
        guard !control.flags.contains(.noStore) || isUnderstood,
            !query.control.flags.contains(.noStore)
        else { return false }
        return head.status.isHeuristicallyCacheable || control.maxAge != nil || head.headers.contains(.expires)
            || control.flags.contains(.public) || control.flags.contains(.private)
    }

    /// Returns the keys that a request invalidates (RFC 9111 §4.4): its own, and those that the response names within
    /// the same origin. A key covers all responses stored under it, whatever Host field they were requested with.
    /// - Parameter host: the value of a Host field that replaced the URL's host.
    static func invalidated(_ request: Request, _ head: HTTPHead, host: String? = nil) -> [CacheKey] {
        guard !request.method.isSafeToCaches, [.successful, .redirection].contains(head.status.kind),
            case .success(let destination) = request.destination,
            let base = try? URIReference(request.url.absoluteString)
        else { return [] }
        var keys = [destination.cacheKey]
        for name in [FieldName.location, .contentLocation] {
            guard let text = head.headers[name], let reference = try? URIReference(text, repairing: true),
                let named = try? base.resolve(reference), let target = try? Target(named),
                let key = namedKey(target, at: destination.target, host)
            else { continue }
            keys.append(key)
        }
        return keys
    }

    /// The key of a URL that the server names; `nil` for another origin.
    private static func namedKey(_ named: Target, at own: Target, _ host: String?) -> CacheKey? {
        if named.origin == own.origin { return CacheKey(named) }
        guard let host, named.origin.scheme == own.origin.scheme, named.hostField.elementsEqual(host.utf8)
        else { return nil }
        return CacheKey(own.origin.scheme, own.hostField, named.originForm)
    }
}

extension StoredResponse {
    /// Turns a first part into the beginning of the whole; false for another part, or one that may not be completed.
    fileprivate mutating func becomeBeginning() -> Bool {
        guard headers.count(of: .contentRange) == 1, let text = headers[.contentRange],
            case .part(let range, let whole?)? = ContentRange(text), range.lowerBound == 0, strongTag != nil,
            !isDecoded, mayBeCompleted
        else { return false }
        status = .ok
        headers.remove(.contentRange)
        headers[.contentLength] = "\(whole)"
        extent = .beginning(0, of: whole)
        return true
    }

    /// Whether the fields permit the completion of a stored beginning. A digest covers the whole, and is compared with
    /// the body of one exchange only: a beginning that was stored before its digest could be compared proves nothing
    /// about the rest, nor the rest about the beginning.
    var mayBeCompleted: Bool { !headers.contains(.contentEncoding) && !BodyDigest.areStated(by: headers) }

    /// Whether a 304 can refer to this response (§4.3.4): it names the same validator, or none.
    func canBeUpdated(by head: HTTPHead) -> Bool {
        guard head.headers.contains(.etag) else {
            guard let modified = head.headers[.lastModified], let own = headers[.lastModified] else { return true }
            return modified == own || headers.contains(.etag)
        }
        guard let theirs = EntityTag(in: head.headers) else { return headers[.etag] == head.headers[.etag] }
        return theirs.isWeak
            ? theirs.matchesWeakly(EntityTag(in: headers)) : EntityTag(in: headers)?.opaque == theirs.opaque
    }

    /// Returns the response with the fields of a newer answer about the same state (§3.2), except those that describe
    /// the stored bytes, or that prove something about the message they came in (RFC 9530 §2, RFC 9421): in another
    /// head they would seem to prove the stored bytes, with which they were never compared.
    /// - Parameter source: where the newer answer came from; the updated fields have both sources.
    func updated(
        by head: HTTPHead, from source: AnswerSource, requestTime: Double, responseTime: Double
    ) -> StoredResponse {
        var updated = self
        if source != self.source { updated.source = self.source.united(with: source) }
        var changed: Set<FieldName> = []
        for field in head.headers.kept where !Self.ofBody.contains(field.name) {
            if changed.insert(field.name).inserted { updated.headers.remove(field.name) }
            updated.headers.append(field.name, field.value)
        }
        // A weak tag does not replace the equal strong tag: the stored bytes are unchanged.
        if let tag = EntityTag(in: headers), !tag.isWeak, EntityTag(in: head.headers)?.isWeak == true {
            updated.headers.remove(.etag)
            tag.append(to: &updated.headers, as: .etag)
        }
        // §5.1: without an Age in the newer answer, the Age of the older one does not stay.
        if !head.headers.contains(.age) { updated.headers.remove(.age) }
        (updated.requestTime, updated.responseTime) = (requestTime, responseTime)
        updated.rules = nil
        updated.rules = updated.knownRules
        return updated
    }

    private static let ofBody: [FieldName] = [
        .contentLength, .contentEncoding, .contentRange, .transferEncoding, .contentDigest, .reprDigest, .signature,
        .signatureInput,
    ]
}

extension Headers {
    /// The fields to store: without those of one connection (RFC 9111 §3.1, RFC 9110 §7.6.1), without those that must
    /// not be reused without validation, and without Set-Cookie, because a session cookie must reach no file.
    var kept: Headers { kept(CacheControl(self)) }

    func kept(_ control: CacheControl) -> Headers {
        var listed: [FieldName] = []
        if contains(.connection), !(withValueBytes(of: .connection) { Self.listsNothing($0) } ?? false),
            let text = self[.connection]
        {
            listed = text.split { $0 == "," || $0 == " " || $0 == "\t" }.map { FieldName(String($0)) }
        }
        if !control.noCacheFields.isEmpty { listed += control.noCacheFields.map { FieldName($0) } }
        return leavingOut(Self.ofConnection.union(listed))
    }

    /// The most common values, `keep-alive` and `close`, list no further fields to leave out.
    private static func listsNothing(_ value: UnsafeRawBufferPointer) -> Bool {
        value.equals("keep-alive") || value.equals("close")
    }

    private static let ofConnection = FieldNameSet([
        .setCookie, .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthenticationInfo,
        .proxyAuthorization,
    ])
}

extension Method {
    /// The safe methods (RFC 9110 §9.2.1); an unknown method may be unsafe (RFC 9111 §4.4).
    fileprivate var isSafeToCaches: Bool { [.get, .head, .options, .trace, .query].contains(self) }
}
