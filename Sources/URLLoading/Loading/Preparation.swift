// From what the caller asked for to what goes on the wire.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A request with nothing left to decide.
struct PreparedRequest: Sendable {
    let request: Request
    let destination: Destination
    var fields: RequestFields
    /// What goes after the head, ready to be sent once.
    var body: OutgoingBody?

    /// A Proxy-Authorization that the caller gave; it is no field of the request itself (security 5).
    let proxyAuthorization: String?
    /// Who must be proved to be using its connection, and what is said on one where nobody is yet.
    var identity: Route.Identity?
    var legs: ProofLegs?
    /// Offered by a request that opens a WebSocket.
    var webSocket: WebSocketOffer?
    /// Said to a proxy, with the whole URL.
    private(set) var isForwarded = false
    /// The login that goes with it, in its fields or with its connection.
    var login: Login?
    /// What opens its connection, in place of what it gets with every request.
    var proxyWords: String?
    /// What it got with Digest: its answer may prove it.
    private(set) var proxyProof: DigestProof?

    /// Whether the content coding of a whole response is undone.
    private let decodesContent: Bool
    private let asksForRange: Bool

    /// Whether the content coding of a response with this status is undone. A part of a coded representation cannot be
    /// decoded (RFC 9110 §14.2).
    func decodesContent(of status: Status) -> Bool { decodesContent && !(asksForRange && status == .partialContent) }

    /// - Parameter isForeign: a redirect has led to another origin than the one the caller named.
    /// - Parameter contentType: what the body is, unless the request says so.
    /// - Parameter cachePolicy: what caches on the way are told of.
    init(
        _ request: Request, _ defaults: DefaultFields, isForeign: Bool, contentType: String? = nil,
        cachePolicy: Request.CachePolicy = .useProtocol
    ) throws(LoadError) {
        switch request.destination {
        case .success(let destination): self.destination = destination
        case .failure(let violation): throw LoadError(violation, .preparing)
        }
        self.request = request
        var own = request.headers
        if let contentType, !own.contains(.contentType) { own.append(.contentType, contentType) }
        decodesContent = defaults.decodesContent(of: request)
        asksForRange = !own.isEmpty && own.contains(.range)
        proxyAuthorization = own.takeProxyFields() ?? (isForeign ? nil : defaults.proxyAuthorization)
        fields = defaults.completing(own, isForeign: isForeign)
        instructCaches(cachePolicy)
    }

    /// As the last proxy on its way gets it (RFC 9112 §3.2.2).
    func forwarded(by proxy: Proxy) -> PreparedRequest {
        var request = self
        request.isForwarded = true
        let (method, target) = (self.request.method.rawValue, destination.target.absoluteForm)
        let digest = proxy.authorization == nil ? proxy.login?.digestAuthorization() : nil
        request.proxyProof = digest.map { DigestProof($0, target, isProxy: true) }
        let said =
            if let digest {
                digest.value(method: method, target: target, bodyHash: digest.challenge.needsBody ? provedBody : nil)
            } else {
                proxyWords ?? proxy.authorizationField(method, target)
            }
        guard let authorization = said else { return request }
        var headers = headers
        headers.append(.proxyAuthorization, authorization)
        request.fields = .own(headers)
        return request
    }

    /// Adds fields, in the place of those of the same name.
    mutating func set(_ added: Headers) {
        var headers =
            switch fields {
            case .defaults(let prepared): prepared.headers
            case .own(let own): own
            }
        for field in added { headers[field.name] = field.value }
        fields = .own(headers)
    }

    /// Tells the caches on the way what the policy wants of them (RFC 9111 §5.2.1, §5.4). The caller's own fields
    /// stay.
    private mutating func instructCaches(_ policy: Request.CachePolicy) {
        let directive: String
        switch policy {
        case .revalidate: directive = "max-age=0"
        case .reloadIgnoringCaches: directive = "no-cache"
        case .useProtocol, .reload, .cacheElseLoad, .onlyIfCached: return
        }
        let given = headers
        if !given.contains(.cacheControl) { set([.cacheControl: directive]) }
        if policy == .reloadIgnoringCaches, !given.contains(.pragma) { set([.pragma: "no-cache"]) }
    }

    /// Takes fields out.
    mutating func remove(_ names: [FieldName]) {
        var headers = headers
        for name in names { headers.remove(name) }
        fields = .own(headers)
    }

    /// It asks for another protocol on its connection, which HTTP/1.1 alone can do (RFC 9113 8.2.2).
    var asksUpgrade: Bool {
        // Prepared fields never do.
        if case .own(let headers) = fields { headers.contains(.upgrade) } else { false }
    }

    /// Says who asks; `nil` says nothing any more.
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

    /// Its Cookie field is the store's, not the caller's.
    private(set) var hasStoredCookies = false
    var carried: CarriedIdentity { CarriedIdentity(login: login, hasCookies: hasStoredCookies) }
    var hasOwnCookies: Bool { !hasStoredCookies && headers.contains(.cookie) }

    /// Cookies of a store; `nil` takes back those it has.
    mutating func setCookies(_ value: String?) {
        guard value != nil || hasStoredCookies else { return }
        hasStoredCookies = value != nil
        var headers = headers
        headers[.cookie] = value
        fields = .own(headers)
    }

    private var headers: Headers {
        switch fields {
        case .defaults(let prepared): prepared.headers
        case .own(let headers): headers
        }
    }

    /// Digits of its body, where the proxy that gets it wants that proved; worked out before it is sent.
    var provedBody: String?

    /// What its request line asks for.
    var targetForm: [UInt8] { isForwarded ? destination.target.absoluteForm : destination.target.originForm }

    /// The body waits until the server wants it (RFC 9110 §10.1.1).
    var expectsContinue: Bool {
        guard body != nil, case .own(let fields) = fields else { return false }
        return fields[.expect]?.lowercased() == "100-continue"
    }

    mutating func dropExpectation() {
        guard case .own(var headers) = fields else { return }
        headers.remove(.expect)
        fields = .own(headers)
    }

    /// What is sent before the request itself to open a connection: a body would be sent for nothing.
    func leg(saying value: String, toProxy: Bool) -> PreparedRequest {
        var leg = self
        if body != nil { leg.body = .data(Data()) }
        leg.dropExpectation()
        leg.say(value, toProxy: toProxy)
        return leg
    }

    mutating func say(_ value: String?, toProxy: Bool) {
        if toProxy { proxyWords = value } else { setAuthorization(value) }
    }

    var framing: HTTP1BodyFraming {
        guard let body else { return .none }
        return body.length.map { .length($0) } ?? .chunked
    }
}
