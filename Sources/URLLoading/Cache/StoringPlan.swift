// Whether and how a response is kept (RFC 9111 §3), what a 304 changes of it (§3.2, §4.3.4), and what an unsafe method
// makes worthless (§4.4). Pure.

import FoundationEssentials
import URLLoadingWire

enum StoringPlan {
    /// What is known of an exchange besides its head.
    struct Facts: Sendable {
        var requestTime: Double
        var responseTime: Double
        /// The content coding is undone.
        var isDecoded = false
        /// Whose it is, as far as the request itself does not show it, and where it came from.
        var provenance = Provenance()
    }

    /// - Returns: what to keep, without its body; `nil` if nothing may or need be.
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
        // What is kept may be without it: then it says nothing later either.
        let isKept = !control.isPresent || stored.headers.contains(.cacheControl)
        let rules = CacheRules(
            stored.status, stored.headers, isKept ? control : CacheControl(), requestTime: facts.requestTime,
            responseTime: facts.responseTime)
        // Whose mark nobody has after this process, or this session, is a secret on disk for nothing.
        stored.isMemoryOnly = !rules.isOfUse || CacheOwner.isPassing(varying)
        stored.rules = rules
        return stored
    }

    private static func isPermitted(_ head: HTTPHead, _ control: CacheControl, _ query: CacheQuery) -> Bool {
        switch head.status.code {
        // A part, if it is a beginning; see `becomeBeginning`. Of a part of which the caller has a condition, none.
        case 206: guard query.request.headers.contains(.range), !query.isConditional else { return false }
        // Answers to conditions, ranges and credentials, not to what was asked for.
        case ..<200, 304, 401, 407, 412, 416: return false
        default: break
        }
        // §5.2.2.3: who must be understood, and is, may be stored after all.
        let isUnderstood = control.flags.contains(.mustUnderstand) && !head.status.reasonPhrase.isEmpty
        guard !control.flags.contains(.noStore) || isUnderstood,
            !CacheControl(query.request.headers).flags.contains(.noStore)
        else { return false }
        return head.status.isHeuristicallyCacheable || control.maxAge != nil || head.headers.contains(.expires)
            || !control.flags.isDisjoint(with: [.public, .private])
    }

    /// The keys that a request has made worthless (RFC 9111 §4.4): what it was about, and what its answer names, if
    /// that is of the same origin. A key stands for all that was stored under it, whatever Host field it was sent with.
    /// - Parameter host: by which a Host field made the server speak, in place of the URL's.
    static func invalidated(_ request: Request, _ head: HTTPHead, host: String? = nil) -> [CacheKey] {
        guard !request.method.isSafeToCaches, [.successful, .redirection].contains(head.status.kind),
            case .success(let destination) = request.destination,
            let base = try? URIReference(request.url.absoluteString)
        else { return [] }
        var keys = [CacheKey(destination.target)]
        for name in [FieldName.location, .contentLocation] {
            guard let text = head.headers[name], let reference = try? URIReference(text, repairing: true),
                let named = try? base.resolve(reference), let target = try? Target(named),
                let key = namedKey(target, at: destination.target, host)
            else { continue }
            keys.append(key)
        }
        return keys
    }

    /// The key of what a server names; `nil` for another origin's.
    private static func namedKey(_ named: Target, at own: Target, _ host: String?) -> CacheKey? {
        if named.origin == own.origin { return CacheKey(named) }
        guard let host, named.origin.scheme == own.origin.scheme, named.hostField.elementsEqual(host.utf8)
        else { return nil }
        return CacheKey(own.origin.scheme, own.hostField, named.originForm)
    }
}

extension StoredResponse {
    /// A first part is kept as the beginning of the whole; false if it is another part, or may not be completed.
    fileprivate mutating func becomeBeginning() -> Bool {
        guard headers.count(of: .contentRange) == 1, let text = headers[.contentRange],
            case .part(let range, let whole?)? = ContentRange(text), range.lowerBound == 0, strongTag != nil,
            !isDecoded,
            !headers.contains(.contentEncoding)
        else { return false }
        status = .ok
        headers.remove(.contentRange)
        headers[.contentLength] = "\(whole)"
        extent = .beginning(0, of: whole)
        return true
    }

    /// Whether a 304 can be about it (§4.3.4): it names the same state, or none.
    func isMeant(by head: HTTPHead) -> Bool {
        guard head.headers.contains(.etag) else {
            guard let modified = head.headers[.lastModified], let own = headers[.lastModified] else { return true }
            return modified == own || headers.contains(.etag)
        }
        guard let theirs = EntityTag(in: head.headers) else { return headers[.etag] == head.headers[.etag] }
        return theirs.isWeak
            ? theirs.matchesWeakly(EntityTag(in: headers)) : EntityTag(in: headers)?.opaque == theirs.opaque
    }

    /// With the fields of a newer answer about the same state (§3.2): all but those that say how the stored bytes are
    /// to be read.
    /// - Parameter source: where the newer answer came from: the fields are of both.
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
        // A weak tag does not take the place of the same one, strong: the bytes are still those.
        if let tag = EntityTag(in: headers), !tag.isWeak, EntityTag(in: head.headers)?.isWeak == true {
            updated.headers.remove(.etag)
            tag.append(to: &updated.headers, as: .etag)
        }
        // §5.1: an Age that the newer answer does not have is that of the older.
        if !head.headers.contains(.age) { updated.headers.remove(.age) }
        (updated.requestTime, updated.responseTime) = (requestTime, responseTime)
        updated.rules = nil
        updated.rules = updated.knownRules
        return updated
    }

    private static let ofBody: [FieldName] = [.contentLength, .contentEncoding, .contentRange, .transferEncoding]
}

extension Headers {
    /// Without what is about one connection (RFC 9111 §3.1, RFC 9110 §7.6.1) or must not be used again unasked; and without
    /// cookies, which were set once, and of which those of a session are in no file.
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

    /// What most servers say: `keep-alive` and `close` are out anyway, or no fields.
    private static func listsNothing(_ value: UnsafeRawBufferPointer) -> Bool {
        value.elementsEqual("keep-alive".utf8) || value.elementsEqual("close".utf8)
    }

    private static let ofConnection = FieldNameSet([
        .setCookie, .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthenticationInfo,
        .proxyAuthorization,
    ])
}

extension Method {
    /// What changes nothing (RFC 9110 §9.2.1); whatever is not known may (RFC 9111 §4.4).
    fileprivate var isSafeToCaches: Bool { [.get, .head, .options, .trace].contains(self) }
}
