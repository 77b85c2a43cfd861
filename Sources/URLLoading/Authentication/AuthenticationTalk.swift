// What one request says and hears of authentication, from its first sending to the answer that is delivered. It exists
// for requests that meet a challenge, or are known to meet one.
//
// Rule 1: what is said to the origin and what to a proxy have nothing in common (RFC 9110 §11.7).
// Rule 2: without a decision no scheme is used that is weaker than one that the same protection space refused.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class AuthenticationTalk: @unchecked Sendable {
    // Unchecked: used by the load's own task.

    /// One of the two who may ask.
    struct Side {
        var login: Login?
        /// The number of the bearer token that was sent.
        var issue: Int?
        var hasRenewedToken = false
        private(set) var refusals: [CredentialRefusal] = []
        /// How many attempts failed, by realm: those of another protection space are not this one's.
        var failures: [String?: Int] = [:]
        /// The tickets in this user's cache were tried, and who was no user of a KDC.
        var hasTriedTicket = false
        var unknownUsers: [Credential] = []
        /// A decision took the response that asks as the result.
        var goesOnWithout = false

        mutating func refuse(_ credential: Credential, in space: ProtectionSpace, strength: Int) {
            refusals.append(CredentialRefusal(credential: credential, space: space, strength: strength))
            failures[space.realm, default: 0] += 1
        }

        /// Whether sending a credential in this way says nothing new, or the same secret in a weaker way than was refused.
        func forbids(_ credential: Credential, in space: ProtectionSpace, strength: Int) -> Bool {
            refusals.contains {
                $0.isRepeated(by: credential, in: space) || $0.isWeakened(by: credential, in: space, strength: strength)
            }
        }
    }
    var origin = Side()
    /// Each proxy on the way may ask.
    var proxies: [Authenticator.Place: Side] = [:]
    let load: any ConnectionClient
    let core: Core
    /// What the load is for.
    private let url: URL
    let authenticator: Authenticator
    /// The request has an Authorization of its caller's.
    private let isCallers: Bool
    /// Told of each bearer token that is renewed here.
    private(set) var renewals: (@Sendable (TokenRenewal) -> Void)?
    private let place: Authenticator.Place
    private let removals: Int
    private let destination: Destination
    let path: String
    /// From the URL.
    let given: Credential?
    var rounds = 0
    /// Over which connection the last question came.
    var channel = Channel()

    struct Channel {
        /// A proxy gets the requests themselves, and perhaps says that it keeps the connections of its clients apart.
        var isForwarded = false
        var keepsClientsApart = false
        /// What names it to a proof (RFC 5929).
        var binding: [UInt8]?

        var mayBeOpened: Bool { !isForwarded || keepsClientsApart }
    }
    /// Of answers to challenges, whatever they are: more than any server needs, and what a decision that never gives
    /// up comes to.
    static let mostRounds = 12

    convenience init(_ hop: Hop, _ load: LoadContext, _ destination: Destination) {
        let isCallers =
            hop.request.headers.contains(.authorization)
            || (!hop.isForeign && load.core.configuration.headers.contains(.authorization))
        self.init(
            load, load.core, load.original.url, destination, isCallers: isCallers,
            given: Self.credential(of: hop, load, destination))
        renewals = hop.renewals
    }

    /// - Parameters:
    ///   - isCallers: the request has an Authorization of its caller's.
    ///   - given: what its URL says.
    init(
        _ load: any ConnectionClient, _ core: Core, _ url: URL, _ destination: Destination, isCallers: Bool = false,
        given: Credential? = nil
    ) {
        self.load = load
        self.core = core
        self.url = url
        self.destination = destination
        authenticator = core.authenticator
        removals = authenticator.removals
        place = Authenticator.Place(destination.route.origin)
        path = String(decoding: destination.target.originForm.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        self.isCallers = isCallers
        self.given = given
    }

    /// `user:password@` of the caller's URL; of one that led elsewhere, or came from a server elsewhere, nothing.
    private static func credential(of hop: Hop, _ load: LoadContext, _ destination: Destination) -> Credential? {
        guard !hop.isForeign else { return nil }
        var target = destination.target
        if target.user == nil, hop.followed > 0, case .success(let first) = load.original.destination {
            target = first.target
        }
        guard let user = target.user else { return nil }
        if target.password == nil, let known = load.core.authenticator.netrcCredential("\(target.origin.host)", user) {
            return known
        }
        return Credential(user: user, password: target.password ?? "", persistence: .none)
    }

    // MARK: Before a request is sent

    /// What is said unasked.
    func begin() async throws(LoadError) {
        guard !isCallers else { return }
        if let bearer = authenticator.bearer, bearer.serves(destination.route.origin) {
            try take(try await bearer.token(for: load.handle))
        } else {
            origin.login = authenticator.login(at: place, path: path, url: given)
        }
    }

    func take(_ issue: BearerKeeper.Issue?) throws(LoadError) {
        guard let issue else { return }
        origin.login = Login(
            .bearer(realm: nil), place.space(.bearer(realm: nil)), .bearer(issue.token, persistence: .none),
            isOfURL: false, path: path)
        // To go on as if there were no token would say less than the caller means.
        guard origin.login != nil else {
            throw LoadError(.badDecision, phase: .deciding, party: .local, detail: BearerTokens.grammar)
        }
        origin.issue = issue.generation
    }

    /// Says who asks, in the words of this sending.
    func authorize(_ request: inout PreparedRequest, _ load: LoadContext) async throws(LoadError) {
        guard !isCallers else { return }
        (request.identity, request.legs, legs, digest) = (nil, nil, nil, nil)
        request.login = origin.login
        guard let login = origin.login, login.opensConnections else {
            guard let login = origin.login, let digest = login.digestAuthorization() else {
                return request.setAuthorization(
                    origin.login?.authorization(request.request.method.rawValue, [], body: nil))
            }
            let bodyHash =
                digest.challenge.needsBody ? try await request.bodyHash(Login.kind(digest.challenge.hash), load) : nil
            self.digest = digest
            return request.setAuthorization(
                digest.value(
                    method: request.request.method.rawValue, target: destination.target.originForm, bodyHash: bodyHash))
        }
        request.identity = Route.Identity(login: login, speaksHTTP1: login.takesLegs)
        // What is said depends on the connection: see `HTTPExchange+Legs`.
        legs = ProofLegs(login, timeout: authenticator.settings.kerberosTimeout)
        request.legs = legs
        request.setAuthorization(nil)
    }

    /// What the request sent last said with Digest: its answer may prove the server.
    private var digest: DigestAuthorization?

    /// RFC 7616 §3.5: a server that proves itself does so, or is another. What is said of a body is known at its end.
    private func hearDigest(_ head: HTTPHead, _ exchange: any NetworkExchange) throws(LoadError) {
        guard let digest else { return }
        let proof = DigestProof(digest, destination.target.originForm, isProxy: false)
        if try !proof.hear(head.headers) { exchange.prove(proof) }
    }

    /// The proof that the request sent last began: its answer may end it.
    private(set) var legs: ProofLegs?

    /// The way with what is known to open its proxies: what this load was told goes before what is remembered.
    func opened(_ way: ProxyChain) -> ProxyChain {
        taken = way
        return authenticator.opened(way) { proxies[$0]?.login }
    }
    /// The way that was tried last.
    private var taken = ProxyChain.direct

    /// The proxies on the way have let something through. Others may have asked before, and have accepted nothing.
    private func rememberProxies() async {
        for proxy in taken.proxies where proxy.isHTTP {
            if let login = proxies[Authenticator.Place(proxy)]?.login { await remember(login) }
        }
    }

    // MARK: After an answer

    /// Whether the request is to be sent again, with what is known now.
    func hear(_ exchange: any NetworkExchange, _ head: HTTPHead, _ request: PreparedRequest) async throws(LoadError)
        -> Bool
    {
        if let forwarder = exchange.forwarder {
            if head.status == .proxyAuthenticationRequired {
                if mayGoOn(exchange) { return true }
                channel = Channel(binding: exchange.binding(toProxy: true))
                return try await challenged(by: forwarder, head, exchange.response) { exchange.setResting($0) }
            }
            forwarder.login?.learn(from: head)
        }
        // Kept: the same request may have to be sent again.
        await rememberProxies()
        guard !isCallers else { return false }
        if let legs, try await legs.hear(head, load.handle) { return true }
        guard head.status == .unauthorized else {
            try hearDigest(head, exchange)
            origin.login?.learn(from: head)
            // A 407 of somebody who is no proxy of ours says nothing.
            if head.status != .proxyAuthenticationRequired { await accepted(&origin) }
            return false
        }
        if mayGoOn(exchange) { return true }
        channel = Channel(
            isForwarded: exchange.forwarder != nil,
            keepsClientsApart: exchange.forwarder?.login?.opensConnections != true && head.keepsClientsApart,
            binding: exchange.binding(toProxy: false))
        exchange.setResting(true)
        defer { exchange.setResting(false) }
        if let again = try await renewToken(exchange.response) { return again }
        guard let login = try await answer(origin, place, head, exchange.response) else { return false }
        origin.login = login
        return true
    }

    /// The same login once more: its connection was not what it was thought to be.
    private func mayGoOn(_ exchange: any NetworkExchange) -> Bool {
        guard exchange.hasLostProof, rounds < Self.mostRounds else { return false }
        rounds += 1
        return true
    }

    /// A proxy on the way refused to open a tunnel.
    func hear(_ refusal: ProxyRefusal) async throws(LoadError) -> Bool {
        let error = refusal.error
        guard error.reason == .proxyAuthenticationRequired, let failure = error.proxyFailure, let head = failure.head,
            let proxy = refusal.way.proxies.first(where: { $0.isHTTP && $0 == failure.proxy })
        else { return false }
        let response = Response(url: url, http: head)
        channel = Channel(binding: refusal.binding)
        return try await challenged(by: proxy, head, response) { _ in }
    }

    private func challenged(
        by proxy: Proxy, _ head: HTTPHead, _ response: Response, _ rest: (Bool) -> Void
    ) async throws(LoadError) -> Bool {
        // A field of the caller's is his to put right.
        guard proxy.authorization == nil else { return false }
        let place = Authenticator.Place(proxy)
        var side = proxies[place] ?? Side()
        side.login = proxy.login
        proxies[place] = side
        let given = proxy.credential
        // Sent unasked as Basic already.
        if proxy.login == nil, !proxy.waitsForQuestion, side.refusals.isEmpty { basicRefused = given }
        rest(true)
        defer { rest(false) }
        guard let login = try await answer(side, place, head, response, given) else { return false }
        proxies[place]?.login = login
        return true
    }
    /// Of a proxy's own credential: refused as Basic, perhaps good for Digest.
    var basicRefused: Credential?

    private func accepted(_ side: inout Side) async {
        guard let login = side.login, side.issue == nil else { return }
        side.login = nil
        await remember(login)
    }

    /// A proxy has opened the way to something that is not http.
    func passedProxy() async { await rememberProxies() }

    private func remember(_ login: Login) async {
        let persistence = login.credential.persistence
        guard persistence != .none || login.isOfURL else { return }
        guard authenticator.remember(login, since: removals), persistence != .none, login.isAnswer else { return }
        let authenticator = authenticator
        _ = await BlockingThreads.files.call(load.handle) { authenticator.keep(login.credential, for: login.space) }
    }
}

extension HTTPHead {
    /// Of a proxy: what is opened through it stays one client's (RFC 4559 §6).
    fileprivate var keepsClientsApart: Bool {
        headers.values(of: "Proxy-Support").contains { value in
            value.split(separator: ",").contains { $0.trimmed.lowercased() == "session-based-authentication" }
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
