// SPDX-License-Identifier: Apache-2.0

// Distinguishes the variants under one key: by the request fields that Vary names (RFC 9111 §4.1), and by the owner.
// Secrets are kept as digests: a cache file must not reveal credentials.

import URLLoadingIO
import URLLoadingWire

enum Varying {
    /// The entry for the user, present even if Vary does not name the field: a response to one user is not served to
    /// another.
    static let identity = "authorization"

    /// A request field in the form in which it is compared and stored.
    /// - Parameter name: in lower case.
    static func value(of name: String, in fields: Headers) -> String? {
        guard let value = fields.comparable(FieldName(name)) else { return nil }
        return harmless.contains(name) ? value : "sha256:" + Digest.hex(value.utf8)
    }

    /// The fields whose values are kept as they are. Any other may name a user, as `X-Api-Key` does.
    private static let harmless: Set = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "origin", "user-agent",
    ]

    /// The mark of a Cookie field among fields that a caller wrote; `nil` without one.
    static func ownCookie(_ fields: Headers) -> String? { fields.isEmpty ? nil : value(of: "cookie", in: fields) }

    /// The entries that a response must be stored with; `nil` if no request could match them.
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

    /// Returns the first field or mark in which a request does not match a stored response; `nil` if it matches.
    static func mismatch(_ stored: StoredResponse, _ query: CacheQuery) -> String? {
        let kept = stored.varying
        if let name = query.differingMark(from: kept) { return name }
        if query.isSigned, let name = query.signedField(in: stored) { return name }
        if kept[identity] == nil, query.willLogIn, case .names(let names)? = VaryField(stored.headers),
            names.contains(identity)
        {
            return identity
        }
        // A request with its own Accept-Encoding gets undecoded bytes; all other requests get decoded ones.
        if !query.isPartial, stored.isDecodable, stored.isDecoded != query.decodes {
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

/// A request, and the identity it will present, as the cache compares them.
struct CacheQuery: Sendable {
    let request: Request
    let policy: Request.CachePolicy
    /// The user named by the caller: in the request, its URL, or the session's fields. A digest.
    var identity: String?
    /// The Cookie field of the request or of the session's fields, as a digest; `nil` without one.
    var ownCookie: String?
    /// The host that is sent, in lower case, if a Host field differs from the URL.
    var host: String?
    /// The store whose cookies may be added.
    var cookies: String?
    /// The TLS checks that the server must pass; `nil` for the defaults of a query without a session.
    var checks: TrustChecks?
    /// The certificates of this server that the trust decision has accepted; `nil` without a decision, or if the
    /// request may not use the network.
    var acceptedCertificates: Set<String>?
    /// False if a cookie store adds to the request's Cookie field. Responses that vary by Cookie are then not stored.
    var knowsCookies = true
    /// The session's fields are unknown: a field that the request does not set matches any value.
    let isPartial: Bool
    private let defaults: DefaultFields?
    private let isForeign: Bool
    /// The session accepts responses of any age, or stores them for loads that do.
    var sessionAcceptsAnyAge = false
    /// `nil` for a lookup without a session.
    let user: (any CacheUser)?
    /// The request has fields of its own.
    let hasFields: Bool
    /// A decision signs the session's requests.
    let isSigned: Bool
    /// The session's address policy may refuse an address.
    let isRestricted: Bool
    /// Whether only responses with a mark can belong to this request.
    var hasMarks: Bool { identity != nil || ownCookie != nil || host != nil || checks?.mark != nil }

    /// The query of a session's request.
    /// - Parameter isForeign: a redirect has led to an origin other than the one the caller named.
    init(
        _ request: Request, isForeign: Bool, policy: Request.CachePolicy, _ defaults: DefaultFields,
        configured: Headers?, _ user: some CacheUser
    ) {
        (self.request, isPartial, self.defaults, self.isForeign) = (request, false, defaults, isForeign)
        (self.user, self.policy) = (user, policy)
        hasFields = !request.headers.isEmpty
        (isSigned, isRestricted) = (user.signerMark != nil, user.hasAddressPolicy)
        identity = Self.identity(request, hasFields, configured)
        ownCookie = (hasFields ? Varying.ownCookie(request.headers) : nil) ?? (isForeign ? nil : defaults.ownCookie)
        host = Self.host(request, hasFields, isForeign ? nil : defaults.host)
    }

    /// The query of a request alone, for lookups without a session.
    init(_ request: Request) {
        (self.request, isPartial, defaults, isForeign, user) = (request, true, nil, false, nil)
        policy = request.cachePolicy ?? .useProtocol
        hasFields = !request.headers.isEmpty
        (isSigned, isRestricted) = (false, false)
        identity = Self.identity(request, hasFields, nil)
        ownCookie = Varying.ownCookie(request.headers)
        host = Self.host(request, hasFields, nil)
    }

    private static func identity(_ request: Request, _ hasFields: Bool, _ configured: Headers?) -> String? {
        if hasFields, request.headers.contains(.authorization) {
            return Varying.value(of: Varying.identity, in: request.headers)
        }
        if let configured, configured.contains(.authorization) {
            return Varying.value(of: Varying.identity, in: configured)
        }
        guard case .success(let destination) = request.destination, let user = destination.target.user else {
            return nil
        }
        return "url:" + Digest.hex("\(user):\(destination.target.password ?? "")".utf8)
    }

    private static func host(_ request: Request, _ hasFields: Bool, _ configured: String?) -> String? {
        let own = hasFields ? request.headers[.host] : nil
        guard let field = own ?? configured, case .success(let destination) = request.destination else { return nil }
        let host = field.lowercased()
        return destination.target.hostField.elementsEqual(host.utf8) ? nil : host
    }

    /// The fields that will be sent, as far as they are known before the request is prepared.
    var fields: Headers {
        switch defaults?.completing(request.headers, isForeign: isForeign) {
        case .defaults(let prepared)?: prepared.headers
        case .own(let headers)?: headers
        case nil: request.headers
        }
    }

    /// Whether the session decodes the response's content coding. A range request is not decoded, since its range is
    /// one of the coded representation.
    var decodes: Bool {
        guard let defaults, defaults.decodesContent(of: request) else { return false }
        return !hasFields || !request.headers.contains(.range)
    }

    var isHead: Bool { request.method == .head }
    /// The request has a condition of its own, so the caller handles the 304 or 412.
    var isConditional: Bool {
        guard hasFields else { return false }
        return Self.conditions.contains { request.headers.contains($0) }
    }
    private static let conditions: [FieldName] = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
    ]

    /// The cache directives of the request, or of its session if it has none; Pragma counts if Cache-Control is absent
    /// (RFC 9111 §5.4).
    var control: CacheControl {
        var control = hasFields ? CacheControl(request.headers) : CacheControl()
        if !control.isPresent, let ofSession = defaults?.cacheControl { control = ofSession }
        if hasFields, !control.isPresent, request.headers[.pragma]?.lowercased().contains("no-cache") == true {
            control.flags.insert(.noCache)
        }
        return control
    }

    /// Whether an equal request, or one of the same session, would be answered with a response that is neither fresh
    /// nor can be validated.
    var acceptsAnyAge: Bool {
        if policy == .cacheElseLoad || sessionAcceptsAnyAge { return true }
        let control = control
        return control.flags.contains(.anyStale) || control.maxStale != nil || control.staleIfError != nil
    }
}
