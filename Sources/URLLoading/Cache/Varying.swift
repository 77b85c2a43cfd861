// What tells the variants under one key apart: the request's fields that Vary names (RFC 9111 §4.1), and who asked.
// What is a secret is kept as a digest: a cache's file proves nobody's identity.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

enum Varying {
    /// The member that says who asked, whether Vary names the field or not: what one may see is not for another.
    static let identity = "authorization"

    /// A field of a request in the form in which it is compared and kept.
    /// - Parameter name: in lower case.
    static func value(of name: String, in fields: Headers) -> String? {
        guard let value = fields.comparable(FieldName(name)) else { return nil }
        return name == "cookie" || name == identity ? "sha256:" + Digest.hex(value.utf8) : value
    }

    /// The mark of a Cookie field among fields that a caller wrote; `nil` without one.
    static func ownCookie(_ fields: Headers) -> String? { fields.isEmpty ? nil : value(of: "cookie", in: fields) }

    /// What a response must be kept with; `nil` if nothing that can be said of a request would find it again.
    static func make(_ response: Headers, _ query: CacheQuery) -> [String: String?]? {
        var varying: [String: String?] = [:]
        query.markOwn(&varying)
        switch VaryField(response) {
        case .everything?: return nil
        case .names(let names)?:
            let fields = query.fields
            for name in names where name != identity {
                guard name != "cookie" || query.knowsCookies else { return nil }
                varying[name] = .some(value(of: name, in: fields))
            }
        case nil: break
        }
        return varying
    }

    /// The field by which a request is not for a stored response; `nil` if it is.
    static func mismatch(_ stored: StoredResponse, _ query: CacheQuery) -> String? {
        let kept = stored.varying
        if let name = query.stranger(to: kept) { return name }
        // A request that names codings itself gets the bytes as they came, and no other request does.
        if !query.isPartial, stored.knownRules.isDecodable, stored.isDecoded != query.decodes {
            return "accept-encoding"
        }
        if !query.allows(stored.source) { return CacheOwner.address }
        guard !kept.isEmpty, kept.contains(where: { !CacheOwner.names.contains($0.key) }) else { return nil }
        let fields = query.fields
        for (name, wanted) in kept where !CacheOwner.names.contains(name) {
            if name == "cookie", !query.knowsCookies { return name }
            let asked = value(of: name, in: fields)
            if asked == nil, query.isPartial { continue }
            if asked != wanted { return name }
        }
        return nil
    }
}

/// What is asked of a cache, and by whom.
struct CacheQuery: Sendable {
    let request: Request
    let policy: Request.CachePolicy
    /// Who says so himself who he is: in the request, its URL, or the session's fields. A digest.
    var identity: String?
    /// The Cookie field of the request or of the session's fields, as a digest; `nil` without one.
    var ownCookie: String?
    /// The host that is sent, in small letters, if a Host field names another than the URL.
    var host: String?
    /// The store whose cookies may go with it, and by which checks its server will be believed.
    var cookies: String?
    var trust: String?
    /// The certificates of this server that the decision about it has let pass; `nil` if nobody decides, or nobody could be
    /// asked because the network is not to be used.
    var believed: Set<String>?
    /// The Cookie that will be sent is the one the request has: no store adds to it. Where one does, what varies by
    /// cookies is not kept.
    var knowsCookies = true
    /// The session's fields are not known: those that the request does not set fit whatever.
    let isPartial: Bool
    private let defaults: DefaultFields?
    private let isForeign: Bool
    /// `nil` for a look-up without a session.
    let user: (any CacheUser)?

    /// For a request of a session.
    /// - Parameter isForeign: a redirect has led to another origin than the one the caller named.
    init(
        _ request: Request, isForeign: Bool, policy: Request.CachePolicy, _ defaults: DefaultFields,
        configured: Headers?, _ user: any CacheUser
    ) {
        (self.request, isPartial, self.defaults, self.isForeign) = (request, false, defaults, isForeign)
        (self.user, self.policy) = (user, policy)
        identity = Self.identity(request, configured)
        ownCookie = Varying.ownCookie(request.headers) ?? (isForeign ? nil : defaults.ownCookie)
        host = Self.host(request, isForeign ? nil : defaults.host)
    }

    /// Of a request alone: look-ups without a session.
    init(_ request: Request) {
        (self.request, isPartial, defaults, isForeign, user) = (request, true, nil, false, nil)
        policy = request.cachePolicy ?? .useProtocol
        identity = Self.identity(request, nil)
        ownCookie = Varying.ownCookie(request.headers)
        host = Self.host(request, nil)
    }

    private static func identity(_ request: Request, _ configured: Headers?) -> String? {
        if request.headers.contains(.authorization) { return Varying.value(of: Varying.identity, in: request.headers) }
        if let configured, configured.contains(.authorization) {
            return Varying.value(of: Varying.identity, in: configured)
        }
        guard case .success(let destination) = request.destination, let user = destination.target.user else {
            return nil
        }
        return "url:" + Digest.hex("\(user):\(destination.target.password ?? "")".utf8)
    }

    private static func host(_ request: Request, _ configured: String?) -> String? {
        let own = request.headers.isEmpty ? nil : request.headers[.host]
        guard let said = own ?? configured, case .success(let destination) = request.destination else { return nil }
        let host = said.lowercased()
        return destination.target.hostField.elementsEqual(host.utf8) ? nil : host
    }

    /// What will be sent, as far as it is known before.
    var fields: Headers {
        switch defaults?.completing(request.headers, isForeign: isForeign) {
        case .defaults(let prepared)?: prepared.headers
        case .own(let headers)?: headers
        case nil: request.headers
        }
    }

    /// The session undoes the coding of what is answered. A range is one of the coded representation.
    var decodes: Bool {
        guard let defaults, defaults.decodesContent(of: request) else { return false }
        return request.headers.isEmpty || !request.headers.contains(.range)
    }

    var isHead: Bool { request.method == .head }
    /// Its own condition is the caller's to answer for.
    var isConditional: Bool {
        guard !request.headers.isEmpty else { return false }
        return Self.conditions.contains { request.headers.contains($0) }
    }
    private static let conditions: [FieldName] = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
    ]

    /// What it says to caches; Pragma where it says nothing else (RFC 9111 §5.4).
    var control: CacheControl {
        guard !request.headers.isEmpty else { return CacheControl() }
        var control = CacheControl(request.headers)
        if !control.isPresent, request.headers[.pragma]?.lowercased().contains("no-cache") == true {
            control.flags.insert(.noCache)
        }
        return control
    }
}
