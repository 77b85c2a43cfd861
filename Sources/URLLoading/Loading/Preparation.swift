// From what the caller asked for to what goes on the wire.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A request with nothing left to decide.
struct PreparedRequest: Sendable {
    let request: Request
    let destination: Destination
    var fields: Fields
    /// What goes after the head, ready to be sent once.
    var body: OutgoingBody?

    enum Fields: Sendable {
        /// The session's defaults and nothing else: the common case, written out once.
        case defaults(HTTP1PreparedFields)
        /// The caller's fields and the defaults it did not set.
        case own(Headers)
    }

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
    private var provedBody: String?

    mutating func prove(to proxy: Proxy, _ load: LoadContext) async throws(LoadError) {
        guard proxy.authorization == nil, let challenge = proxy.login?.digestChallenge, challenge.needsBody else {
            return
        }
        provedBody = try await bodyHash(Login.kind(challenge.hash), load)
    }

    /// Digits; `nil` if the body could not be read. Files are read once more for it, a sequence is asked for once more, and
    /// so is a decision that gave one.
    func bodyHash(_ kind: DigestHash, _ load: LoadContext) async throws(LoadError) -> String? {
        switch body {
        case nil: return kind.hex([])
        case .data(let data)?: return kind.hex(Array(data))
        case .stream?:
            guard let content = request.body?.content else { return nil }
            if case .stream(_, _, let make) = content { return await OutgoingBody.hash(of: make, kind, load.handle) }
            return try await hashOfAnother(kind, load)
        case .parts(let parts)?:
            return await BlockingThreads.files.call(load.handle) { OutgoingBody.hash(of: parts, kind, load.handle) }
                ?? nil
        }
    }

    /// What a decision gave may be good for one reading.
    private func hashOfAnother(_ kind: DigestHash, _ load: LoadContext) async throws(LoadError) -> String? {
        var other = self
        other.body = try await OutgoingBody.open(
            try await load.demandBody(Hop(request: request), .challenge), load.handle)
        guard case .stream(_, _, let pieces)? = other.body else { return try await other.bodyHash(kind, load) }
        return await OutgoingBody.hash(of: { pieces }, kind, load.handle)
    }

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

/// The fields every request gets unless it sets them itself.
final class DefaultFields: Sendable {
    private let own: Set
    /// For origins that a redirect led to: session-wide credentials are not theirs either.
    private let foreign: Set
    private let offersCoding: Bool
    /// Of the session, for its proxy.
    let proxyAuthorization: String?
    /// What stored responses are told apart by: a Host of the session's, and its Cookie as a digest.
    let host: String?
    let ownCookie: String?

    private struct Set: Sendable {
        let headers: Headers
        let prepared: HTTP1PreparedFields?

        init(_ headers: Headers) {
            self.headers = headers
            prepared = HTTP1PreparedFields(headers)
        }
    }

    init(_ configuration: Configuration) {
        var fields = configuration.headers
        proxyAuthorization = fields.takeProxyFields()
        (host, ownCookie) = (fields[.host], Varying.ownCookie(fields))
        func add(_ name: FieldName, _ value: String?) {
            if let value, !fields.contains(name) { fields.append(name, value) }
        }
        offersCoding = configuration.acceptEncoding != nil && !fields.contains(.acceptEncoding)
        add(.accept, "*/*")
        add(.acceptEncoding, configuration.acceptEncoding)
        add(.userAgent, configuration.userAgent)
        own = Set(fields)
        // Nor is another origin told where the caller came from.
        for name in FieldName.personal + [.referer] { fields.remove(name) }
        foreign = Set(fields)
    }

    /// Whether the content coding of a whole response to a request is undone.
    func decodesContent(of request: Request) -> Bool {
        switch request.contentDecoding {
        case .ifOffered: offersCoding && (request.headers.isEmpty || !request.headers.choosesCoding)
        case .always: true
        case .never: false
        }
    }

    func completing(_ given: Headers, isForeign: Bool) -> PreparedRequest.Fields {
        let prepared = isForeign ? foreign.prepared : own.prepared
        if given.isEmpty, let prepared { return .defaults(prepared) }
        let defaults = isForeign ? foreign.headers : own.headers
        guard !given.isEmpty else { return .own(defaults) }
        var complete = given
        for field in defaults where !given.contains(field.name) {
            if field.name == .acceptEncoding, given.choosesCoding { continue }
            complete.append(field.name, field.value)
        }
        return .own(complete)
    }
}

extension FieldName {
    /// What proves to one server who we are, and its name: never for another.
    static let personal: [FieldName] = [.authorization, .cookie, .proxyAuthorization, .host]
}

extension Headers {
    /// Takes out what is meant for a proxy and for nobody behind it, and returns the credentials among it.
    fileprivate mutating func takeProxyFields() -> String? {
        guard !isEmpty else { return nil }
        let credentials = self[.proxyAuthorization]
        if credentials != nil { remove(.proxyAuthorization) }
        if contains(.proxyConnection) { remove(.proxyConnection) }
        return credentials
    }

    /// Whether the coding of the answer is no longer ours to choose. A range of a coded
    /// representation could not be decoded (RFC 9110 §14.2).
    var choosesCoding: Bool { contains(.acceptEncoding) || contains(.range) }
}
