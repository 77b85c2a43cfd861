// SPDX-License-Identifier: Apache-2.0

// In this folder: a request as it is sent: default fields, cookies, the offer of a WebSocket

// The preparation of a request: from the caller's value to the fields and the body that are sent.

import FoundationEssentials
import URLLoadingWire

/// A request that is ready to be sent.
struct PreparedRequest {
    let request: Request
    private(set) var destination: Destination
    var fields: RequestFields
    /// The body, opened for one sending.
    var body: OutgoingBody?

    /// The caller's Proxy-Authorization field, kept apart because it must never be sent to the origin.
    let proxyAuthorization: String?
    /// Login that the connection must be authenticated as (NTLM, Negotiate), and the handshake for one that is not yet.
    var identity: Route.Identity?
    var authenticationHandshake: AuthenticationHandshake?
    /// The offer of a request that opens a WebSocket.
    let webSocket: WebSocketOffer?
    /// True if the request is sent to a proxy in absolute form.
    private(set) var isForwarded = false
    /// The login that authenticates the request, by its fields or by its connection.
    var login: Login?
    /// The proxy credentials that authenticate the connection, in place of the field sent with every request.
    var proxyCredentials: String?
    /// The Digest proof sent to the proxy, against which the response is checked.
    private(set) var proxyProof: DigestProof?

    /// True if the content coding of a complete response is decoded.
    private let decodesContent: Bool
    private let asksForRange: Bool
    /// True if the body is sent in chunks although its length may be known.
    private var isChunked: Bool

    /// Returns whether the content coding of a response with this status is decoded. A part of a coded representation
    /// cannot be decoded (RFC 9110 §14.2).
    func decodesContent(of status: Status) -> Bool { decodesContent && !(asksForRange && status == .partialContent) }

    /// Returns a request, completed by the session's default fields.
    /// - Parameters:
    ///   - isForeign: true if a redirect has led to another origin than the caller's.
    ///   - contentType: the media type of the body, unless the request has a Content-Type field.
    ///   - cachePolicy: the policy to announce to intermediate caches.
    ///   - webSocket: the offer of a request that opens a WebSocket.
    static func make(
        _ request: Request, _ defaults: DefaultFields, isForeign: Bool, contentType: String? = nil,
        cachePolicy: Request.CachePolicy = .useProtocol, webSocket: WebSocketOffer? = nil
    ) throws(LoadError) -> PreparedRequest {
        let destination: Destination
        switch request.destination {
        case .success(let found): destination = found
        case .failure(let violation): throw LoadError(violation, .preparing)
        }
        var own = request.headers
        if let contentType, !own.contains(.contentType) { own.append(.contentType, contentType) }
        let asksForRange = !own.isEmpty && own.contains(.range)
        let isChunked = request.framingFields == .replaced && own.takeFraming(hasBody: request.body != nil)
        let proxyAuthorization = own.takeProxyFields() ?? (isForeign ? nil : defaults.proxyAuthorization)
        // In one step: an initializer that throws would build a value, copy it, and destroy the first one.
        return PreparedRequest(
            request: request, destination: destination,
            fields: defaults.completing(own, isForeign: isForeign).instructingCaches(cachePolicy),
            proxyAuthorization: proxyAuthorization, webSocket: webSocket,
            decodesContent: defaults.decodesContent(of: request), asksForRange: asksForRange, isChunked: isChunked)
    }

    /// Returns the request in the form for the last proxy of the route (RFC 9112 §3.2.2).
    func forwarded(by proxy: Proxy) -> PreparedRequest {
        var request = self
        request.isForwarded = true
        let (method, target) = (self.request.method.rawValue, destination.target.absoluteForm)
        let digest = proxy.authorization == nil ? proxy.login?.digestAuthorization() : nil
        request.proxyProof = digest.map { DigestProof($0, target, isProxy: true) }
        let authorization =
            if let digest {
                digest.value(method: method, target: target, bodyHash: digest.challenge.needsBody ? provedBody : nil)
            } else {
                proxyCredentials ?? proxy.authorizationField(method, target)
            }
        guard let authorization else { return request }
        var headers = headers
        headers.append(.proxyAuthorization, authorization)
        request.fields = .own(headers)
        return request
    }

    /// Whether the request was prepared without a wait and not sent before, and so may be sent as early data.
    var isFirst = false

    /// What the sign decision has added.
    var signature = SignatureUse.none

    /// Replaces the target by that of a signature in the query, of the same origin.
    mutating func setTarget(_ target: Target) { destination = Destination(target) }

    /// Sets fields, replacing those of the same name.
    mutating func set(_ added: Headers) {
        var headers = headers
        for field in added { headers[field.name] = field.value }
        fields = .own(headers)
    }

    /// Removes fields.
    mutating func remove(_ names: [FieldName]) {
        var headers = headers
        for name in names { headers.remove(name) }
        fields = .own(headers)
    }

    /// True if the request asks for a switch of protocols, which only HTTP/1.1 supports (RFC 9113 §8.2.2).
    var asksUpgrade: Bool {
        // The session's default fields have no Upgrade.
        if case .own(let headers) = fields { headers.contains(.upgrade) } else { false }
    }

    /// Sets the Authorization field; `nil` removes it.
    mutating func setAuthorization(_ value: String?) {
        var headers: Headers
        switch fields {
        case .defaults(let prepared):
            guard value != nil else { return }
            headers = prepared.headers
        case .own(let own): headers = own
        }
        headers[.authorization] = value
        fields = .own(headers)
    }

    /// True if the Cookie field is the cookie store's, not the caller's.
    private(set) var hasStoredCookies = false
    var carried: CarriedIdentity {
        CarriedIdentity(login: login, hasCookies: hasStoredCookies, signature: signature)
    }
    var hasOwnCookies: Bool { !hasStoredCookies && headers.contains(.cookie) }

    /// Sets the Cookie field from a store; `nil` removes a field set before.
    mutating func setCookies(_ value: String?) {
        guard value != nil || hasStoredCookies else { return }
        hasStoredCookies = value != nil
        var headers = headers
        headers[.cookie] = value
        fields = .own(headers)
    }

    private var headers: Headers { fields.headers }

    /// The hexadecimal digest of the body, for proxies that require auth-int; computed before the request is sent.
    var provedBody: String?

    /// The request target for the request line.
    var targetForm: [UInt8] { isForwarded ? destination.target.absoluteForm : destination.target.originForm }

    /// True if the body waits for 100 (Continue) (RFC 9110 §10.1.1).
    var expectsContinue: Bool {
        body != nil && headers[.expect]?.lowercased() == "100-continue"
    }

    mutating func dropExpectation() {
        if headers.contains(.expect) { remove([.expect]) }
    }

    /// Returns the request of one message that authenticates the connection, without a body, because a refused one is
    /// wasted.
    func handshakeRequest(authorization value: String, toProxy: Bool) -> PreparedRequest {
        var request = self
        if body != nil { request.body = .data(Data()) }
        request.isChunked = false
        request.dropExpectation()
        request.setAuthorization(value, toProxy: toProxy)
        return request
    }

    mutating func setAuthorization(_ value: String?, toProxy: Bool) {
        if toProxy { proxyCredentials = value } else { setAuthorization(value) }
    }

    var framing: HTTP1BodyFraming {
        guard let body else { return .none }
        if isChunked { return .chunked }
        return body.length.map { .length($0) } ?? .chunked
    }
}

extension Headers {
    /// Removes Content-Length and Transfer-Encoding, so that the framing of the body determines them. A transfer coding
    /// other than `chunked` and `identity` stays, and the request is refused: the caller may have applied it.
    /// - Returns: true if the fields ask for a body in chunks.
    fileprivate mutating func takeFraming(hasBody: Bool) -> Bool {
        guard !isEmpty else { return false }
        remove(.contentLength)
        guard let coding = self[.transferEncoding]?.lowercased() else { return false }
        if !hasBody || ["chunked", "identity", ""].contains(coding) { remove(.transferEncoding) }
        return hasBody && coding == "chunked"
    }
}
