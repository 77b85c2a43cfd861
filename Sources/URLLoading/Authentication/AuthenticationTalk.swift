// What one request says and hears of authentication, from its first sending to the answer that is delivered. It exists
// for requests that meet a challenge, or are known to meet one.
//
// Rule 1: what is said to the origin and what to a proxy have nothing in common (RFC 9110 §11.7).
// Rule 2: without a decision no way is taken that is weaker than the one that failed.

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
        var failures = 0
        var refused: [Credential] = []
    }
    var origin = Side()
    var proxy = Side()
    /// Which proxy it was.
    var proxyPlace: Authenticator.Place?
    let load: Load
    let authenticator: Authenticator
    /// The request has an Authorization of its caller's.
    private let isCallers: Bool
    private let place: Authenticator.Place
    private let destination: Destination
    let path: String
    /// From the URL.
    let given: Credential?
    var rounds = 0
    /// A proxy gets the requests themselves.
    var hasForwarder = false
    /// Of answers to challenges, whatever they are: more than any server needs, and what a decision that never gives
    /// up comes to.
    static let mostRounds = 12

    init(_ hop: Load.Hop, _ load: Load, _ destination: Destination) {
        self.load = load
        self.destination = destination
        authenticator = load.core.authenticator
        place = Authenticator.Place(destination.route.origin)
        path = String(decoding: destination.target.originForm.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        isCallers = hop.request.headers.contains(.authorization)
            || (!hop.isForeign && load.core.configuration.headers.contains(.authorization))
        given = Self.credential(of: hop, load, destination)
    }

    /// `user:password@` of the caller's URL; of one that led elsewhere, or came from a server elsewhere, nothing.
    private static func credential(of hop: Load.Hop, _ load: Load, _ destination: Destination) -> Credential? {
        guard !hop.isForeign else { return nil }
        var target = destination.target
        if target.user == nil, hop.followed > 0, case .success(let first) = load.original.destination { target = first.target }
        guard let user = target.user else { return nil }
        if target.password == nil, let known = load.core.authenticator.netrcCredential("\(target.origin.host)", user) { return known }
        return Credential(user: user, password: target.password ?? "", persistence: .none)
    }

    // MARK: Before a request is sent

    /// What is said unasked.
    func begin() async throws(LoadError) {
        guard !isCallers else { return }
        if let bearer = authenticator.bearer, bearer.serves(destination.route.origin) {
            take(try await bearer.token(for: load))
        } else {
            origin.login = authenticator.login(at: place, path: path, url: given)
        }
    }

    func take(_ issue: BearerKeeper.Issue?) {
        guard let issue else { return }
        origin.login = Login(
            .bearer(realm: nil), place.space(.bearer(realm: nil)), .bearer(issue.token, persistence: .none), isOfURL: false, path: path)
        origin.issue = issue.generation
    }

    /// Says who asks, in the words of this sending.
    func authorize(_ request: inout PreparedRequest) async {
        guard !isCallers else { return }
        (request.identity, request.legs, ticket, digest) = (nil, nil, nil, nil)
        guard let login = origin.login, login.opensConnections else {
            guard let login = origin.login, let digest = login.digestAuthorization() else {
                return request.setAuthorization(origin.login?.authorization(request.request.method.rawValue, [], body: nil))
            }
            self.digest = digest
            let bodyHash = digest.challenge.needsBody ? await request.bodyHash(Login.kind(digest.challenge.hash), load) : nil
            return request.setAuthorization(digest.value(
                method: request.request.method.rawValue, target: destination.target.originForm, bodyHash: bodyHash))
        }
        request.identity = Route.Identity(login: login, speaksHTTP1: login.takesLegs)
        if login.takesLegs {
            if login.isTicket { ticket = newTicket() }
            request.legs = login.isTicket ? ProofLegs(ticket: ticket, host: place.host) : ProofLegs(ntlm: login.credential, host: place.host)
            return request.setAuthorization(nil)
        }
        // A token is good for one request: servers remember those they have seen.
        let begun: (TicketContext, [UInt8])?
        if let made = begunTicket { begun = made } else { begun = await beginTicket() }
        (begunTicket, ticket) = (nil, begun?.0)
        request.setAuthorization(begun.map { "Negotiate " + Base64.encode($0.1) })
    }

    /// What the request sent last said with Digest: its answer may prove the server.
    private var digest: DigestAuthorization?

    /// RFC 7616 §3.5: a server that proves itself does so, or is another.
    private func hearDigest(_ head: HTTPHead) throws(LoadError) {
        guard let digest, let text = head.headers[.authenticationInfo], let information = AuthenticationChallenge.information(text),
            !digest.isProved(by: information, target: destination.target.originForm)
        else { return }
        throw .proofBroken("rspauth of Authentication-Info is wrong: the server does not know the password")
    }

    /// The proof that the request sent last began: its answer may end it.
    private var ticket: TicketContext?
    private var begunTicket: (TicketContext, [UInt8])?

    private func newTicket() -> TicketContext? {
        guard case .name = destination.route.origin.host.kind else { return nil }
        return TicketLibrary.shared?.context(for: "HTTP", on: place.host)
    }

    private func beginTicket() async -> (TicketContext, [UInt8])? {
        guard let context = newTicket(), case .goesOn(let said, _) = await context.step([], load), !said.isEmpty else { return nil }
        return (context, said)
    }

    /// Negotiate asks nobody: there is a ticket in this user's cache, or there is not (checklist 70).
    func ticket(_ space: ProtectionSpace) async -> Login? {
        guard !space.isProxy, !hasTriedTicket else { return nil }
        hasTriedTicket = true
        begunTicket = await beginTicket()
        guard begunTicket != nil else { return nil }
        return Login(.negotiate, space, Credential(user: "", password: ""), isOfURL: false, path: path)
    }
    var hasTriedTicket = false

    /// What the server says to a ticket: that it is who we think it is, or that it wants to hear more.
    /// - Returns: whether more is to be said.
    private func hearTicket(_ head: HTTPHead) async throws(LoadError) -> Bool {
        guard let ticket, let login = origin.login, let words = ProofLegs.words(of: "Negotiate", in: head.headers) else { return false }
        self.ticket = nil
        if head.status == .unauthorized {
            guard !login.takesLegs, case .goesOn(_, isComplete: false) = await ticket.step(words, load) else { return false }
            login.takeLegs()
            return true
        }
        guard case .goesOn(_, isComplete: true) = await ticket.step(words, load) else {
            if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
            throw .proofBroken("the server of a ticket does not prove that it is \(place.host)")
        }
        return false
    }

    /// The way with what is known to open its proxies: what this load was told goes before what is remembered.
    func opened(_ way: ProxyChain) -> ProxyChain {
        authenticator.opened(way) { $0 == proxyPlace ? proxy.login : nil }
    }

    // MARK: After an answer

    /// Whether the request is to be sent again, with what is known now.
    func hear(_ exchange: any NetworkExchange, _ head: HTTPHead, _ request: PreparedRequest) async throws(LoadError) -> Bool {
        (knowsBody, knowsBytes) = (request.knowsBody, request.bodyBytes != nil)
        hasForwarder = exchange.forwarder != nil
        if let forwarder = exchange.forwarder {
            if head.status == .proxyAuthenticationRequired {
                return try await challenged(by: forwarder, head, exchange.response) { exchange.setResting($0) }
            }
            forwarder.login?.learn(from: head)
        }
        // Kept: the same request may have to be sent again.
        if let login = proxy.login { await remember(login) }
        guard !isCallers else { return false }
        if try await hearTicket(head) { return true }
        guard head.status == .unauthorized else {
            try hearDigest(head)
            origin.login?.learn(from: head)
            // A 407 of somebody who is no proxy of ours says nothing.
            if head.status != .proxyAuthenticationRequired { await accepted(&origin) }
            return false
        }
        if exchange.hasLostProof, rounds < Self.mostRounds {
            rounds += 1
            return true
        }
        exchange.setResting(true)
        defer { exchange.setResting(false) }
        if let again = try await renewToken(exchange.response) { return again }
        guard let login = try await answer(origin, place, head, exchange.response) else { return false }
        origin.login = login
        return true
    }

    private(set) var knowsBody = true
    /// Those in memory: what is said to a proxy is made when it is sent.
    private(set) var knowsBytes = true

    /// A proxy on the way refused to open a tunnel.
    func hear(_ error: LoadError, _ way: ProxyChain) async throws(LoadError) -> Bool {
        (knowsBody, knowsBytes) = (true, true)
        guard error.reason == .proxyAuthenticationRequired, let failure = error.proxyFailure, let head = failure.head,
            let proxy = way.proxies.first(where: { $0.isHTTP && $0 == failure.proxy })
        else { return false }
        let response = Response(url: load.original.url, http: head)
        return try await challenged(by: proxy, head, response) { _ in }
    }

    private func challenged(
        by proxy: Proxy, _ head: HTTPHead, _ response: Response, _ rest: (Bool) -> Void
    ) async throws(LoadError) -> Bool {
        // A field of the caller's is his to put right.
        guard proxy.authorization == nil else { return false }
        let place = Authenticator.Place(proxy)
        if place != proxyPlace { (self.proxy, proxyPlace) = (Side(), place) }
        self.proxy.login = proxy.login
        let given = proxy.credential
        // Sent unasked as Basic already.
        if proxy.login == nil, self.proxy.refused.isEmpty { basicRefused = given }
        rest(true)
        defer { rest(false) }
        guard let login = try await answer(self.proxy, place, head, response, given) else { return false }
        self.proxy.login = login
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
    func passedProxy() async { if let login = proxy.login { await remember(login) } }

    private func remember(_ login: Login) async {
        let persistence = login.credential.persistence
        guard persistence != .none || login.isOfURL else { return }
        guard authenticator.remember(login), persistence != .none, login.isAnswer else { return }
        let authenticator = authenticator
        _ = await BlockingThreads.files.call(load) { authenticator.keep(login.credential, for: login.space) }
    }
}
