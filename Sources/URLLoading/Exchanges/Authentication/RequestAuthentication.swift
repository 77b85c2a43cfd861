// SPDX-License-Identifier: Apache-2.0

// In this folder: the answers to challenges for credentials, and what a session knows of its logins

// The authentication of one request, from its first sending to the delivered response. It exists only for requests that
// are challenged, or are expected to be.
//
// Rule 1: credentials for the origin and for a proxy are independent (RFC 9110 §11.7).
// Rule 2: without a decision no scheme is used that is weaker than one that the same protection space refused.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class RequestAuthentication {

    /// The state of the authentication to the origin or to one proxy.
    struct Side {
        var login: Login?
        /// The number of the bearer token that was sent.
        var issue: Int?
        /// How many refreshes of that token had failed when it was issued.
        var failedRefreshes = 0
        var hasRenewedToken = false
        private(set) var refusals: [CredentialRefusal] = []
        /// The number of failed attempts by protection space: another scheme of the same realm is another one.
        var failures: [ProtectionSpace: Int] = [:]
        /// The tickets in this user's cache were tried.
        var hasTriedTicket = false
        var unknownUsers: [Credential] = []
        /// A decision accepted the challenge as the response of the load.
        var continuesWithoutCredential = false

        mutating func refuse(_ credential: Credential, in space: ProtectionSpace, strength: Int) {
            refusals.append(CredentialRefusal(credential: credential, space: space, strength: strength))
            failures[space, default: 0] += 1
        }

        /// Whether sending a credential would repeat a refused attempt, or send the same secret with a weaker scheme.
        func forbids(_ credential: Credential, in space: ProtectionSpace, strength: Int) -> Bool {
            refusals.contains {
                $0.isRepeated(by: credential, in: space) || $0.isWeakened(by: credential, in: space, strength: strength)
            }
        }
    }
    var origin = Side()
    /// The state of each proxy of the chain.
    var proxies: [Authenticator.Server: Side] = [:]
    let load: any ConnectionClient
    let core: Core
    /// The URL of the load.
    private let url: URL
    let authenticator: Authenticator
    /// The caller set the request's Authorization field.
    private let isCallerSet: Bool
    /// Told of each bearer token that is renewed by this request.
    private(set) var calls: AttemptCalls?
    private let server: Authenticator.Server
    private let removals: Int
    private let destination: Destination
    let path: String
    /// The credential in the URL.
    private(set) var given: Credential?
    /// The user in the URL, if a netrc file may have the password.
    private var userWithoutPassword: String?
    var rounds = 0
    /// The connection that carried the last challenge.
    var channel = Channel()

    struct Channel {
        /// The request is forwarded by a proxy, which may announce that it keeps its clients' connections apart
        /// (`Proxy-Support: Session-Based-Authentication`, RFC 4559 §6).
        var isForwarded = false
        var keepsClientsApart = false
        /// The channel binding (RFC 5929).
        var binding: [UInt8]?

        var mayBeOpened: Bool { !isForwarded || keepsClientsApart }
    }
    /// The limit of answered challenges for one request: more than any server needs, and a bound on a decision that
    /// never gives up.
    static let maximumRounds = 12

    convenience init(_ hop: Hop, _ load: LoadContext, _ destination: Destination) {
        let isCallerSet =
            hop.request.headers.contains(.authorization)
            || (!hop.isForeign && load.core.configuration.headers.contains(.authorization))
        let target = Self.target(of: hop, load, destination)
        self.init(
            load, load.core, load.original.url, destination, isCallerSet: isCallerSet,
            given: target?.user.map { Credential(user: $0, password: target?.password ?? "", persistence: .none) })
        calls = hop.calls
        if target?.password == nil, authenticator.settings.netrc != nil { userWithoutPassword = target?.user }
    }

    /// - Parameters:
    ///   - isCallerSet: the caller set the request's Authorization field.
    ///   - given: the credential in the URL.
    init(
        _ load: any ConnectionClient, _ core: Core, _ url: URL, _ destination: Destination, isCallerSet: Bool = false,
        given: Credential? = nil
    ) {
        self.load = load
        self.core = core
        self.url = url
        self.destination = destination
        authenticator = core.authenticator
        removals = authenticator.removals
        server = Authenticator.Server(destination.route.origin)
        path = String(decoding: destination.target.originForm.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        self.isCallerSet = isCallerSet
        self.given = given
    }

    /// The target whose `user:password@` is the caller's; nil for the URL of a redirect to another origin.
    private static func target(of hop: Hop, _ load: LoadContext, _ destination: Destination) -> Target? {
        guard !hop.isForeign else { return nil }
        if destination.target.user == nil, hop.followed > 0, case .success(let first) = load.original.destination {
            return first.target
        }
        return destination.target
    }

    /// Completes a credential in the URL by the password of a netrc file, which may have to be read.
    func completeGiven() async throws(LoadError) {
        guard let user = userWithoutPassword else { return }
        userWithoutPassword = nil
        let (authenticator, host) = (authenticator, "\(destination.target.origin.host)")
        let found = await BlockingThreads.files.call(load.handle) { authenticator.netrcCredential(host, user) }
        guard let found else { throw LoadError(load.stopReason ?? .cancelled, phase: .deciding) }
        given = found ?? given
    }

    // MARK: Before a request is sent

    /// Selects the credential that is sent without being challenged.
    func begin() async throws(LoadError) {
        guard !isCallerSet else { return }
        if let bearer = authenticator.bearer, bearer.serves(destination.route.origin) {
            try take(try await bearer.token(for: load.handle))
        } else {
            try await completeGiven()
            origin.login = authenticator.login(at: server, path: path, url: given)
        }
    }

    func take(_ issue: SharedBearerToken.Issue?) throws(LoadError) {
        guard let issue else { return }
        origin.login = Login(
            .bearer(realm: nil), server.space(.bearer(realm: nil)), .bearer(issue.token, persistence: .none),
            path: path)
        // Sending the request without a token would not be what the caller configured.
        guard origin.login != nil else {
            throw LoadError(.badDecision, phase: .deciding, party: .local, detail: BearerTokens.grammar)
        }
        (origin.issue, origin.failedRefreshes) = (issue.generation, issue.failures)
    }

    /// Sets the Authorization field, or the identity of the connection, for this sending.
    func authorize(_ request: inout PreparedRequest, _ load: LoadContext) async throws(LoadError) {
        guard !isCallerSet else { return }
        (request.identity, request.authenticationHandshake, authenticationHandshake, digest) = (nil, nil, nil, nil)
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
        request.identity = Route.Identity(login: login, speaksHTTP1: login.isMultiRound)
        // The messages depend on the connection: see `HTTPExchange+AuthenticationHandshake`.
        authenticationHandshake = AuthenticationHandshake(login, timeout: authenticator.settings.kerberosTimeout)
        request.authenticationHandshake = authenticationHandshake
        request.setAuthorization(nil)
    }

    /// The Digest proof of the last sending: the response may prove the server.
    private var digest: DigestAuthorization?

    /// RFC 7616 §3.5: checks the server's own proof. A proof that covers the body is checked at the end of the body.
    private func checkServerDigest(_ head: HTTPHead, _ exchange: any NetworkExchange) throws(LoadError) {
        guard let digest else { return }
        let proof = DigestProof(digest, destination.target.originForm, isProxy: false)
        if try !proof.process(head.headers) { exchange.prove(proof) }
    }

    /// The connection authentication that the last sending began: the response may complete it.
    private(set) var authenticationHandshake: AuthenticationHandshake?

    /// Returns the proxy chain with logins for its proxies; the logins of this load precede remembered ones.
    func opened(_ proxyChain: ProxyChain) -> ProxyChain {
        taken = proxyChain
        return authenticator.opened(proxyChain) { proxies[$0]?.login }
    }
    /// The proxy chain of the last attempt.
    private var taken = ProxyChain.direct

    /// Remembers the logins of the chain's proxies after they have let a request through.
    private func rememberProxies() async {
        for proxy in taken.proxies where proxy.isHTTP {
            if let login = proxies[Authenticator.Server(proxy)]?.login { await remember(login) }
        }
    }

    // MARK: After an answer

    /// Returns whether the request must be sent again with another login.
    func process(_ exchange: any NetworkExchange, _ head: HTTPHead, _ request: PreparedRequest) async throws(LoadError)
        -> Bool
    {
        if let forwarder = exchange.forwarder {
            if head.status == .proxyAuthenticationRequired {
                if mayRetrySameLogin(exchange) { return true }
                channel = Channel(binding: exchange.binding(toProxy: true))
                return try await challenged(by: forwarder, head, exchange.response) { exchange.setUnread($0) }
            }
            forwarder.login?.learn(from: head)
        }
        // The proxies have accepted their logins, which stay in `proxies`: the request may have to be sent again.
        await rememberProxies()
        guard !isCallerSet, exchange.carried.signature != .authorization else { return false }
        if let authenticationHandshake, try await authenticationHandshake.process(head, load.handle) { return true }
        guard head.status == .unauthorized else {
            try checkServerDigest(head, exchange)
            origin.login?.learn(from: head)
            // A 407 that does not come from a configured proxy proves nothing.
            if head.status != .proxyAuthenticationRequired { await accepted(&origin) }
            return false
        }
        if mayRetrySameLogin(exchange) { return true }
        channel = Channel(
            isForwarded: exchange.forwarder != nil,
            keepsClientsApart: exchange.forwarder?.login?.opensConnections != true && head.keepsClientsApart,
            binding: exchange.binding(toProxy: false))
        exchange.setUnread(true)
        defer { exchange.setUnread(false) }
        if let again = try await renewToken(exchange.response) { return again }
        guard let login = try await answer(origin, server, head, exchange.response) else { return false }
        origin.login = login
        return true
    }

    /// Whether to retry with the same login, because its connection was not the authenticated one.
    private func mayRetrySameLogin(_ exchange: any NetworkExchange) -> Bool {
        guard exchange.hasLostAuthentication, rounds < Self.maximumRounds else { return false }
        rounds += 1
        return true
    }

    /// Returns whether the tunnel must be opened again, after a proxy of the chain refused it.
    func process(_ refusal: ProxyRefusal) async throws(LoadError) -> Bool {
        let error = refusal.error
        guard error.reason == .proxyAuthenticationRequired, let failure = error.proxyFailure, let head = failure.head,
            let proxy = refusal.proxyChain.proxies.first(where: { $0.isHTTP && $0 == failure.proxy })
        else { return false }
        let response = Response(url: url, http: head)
        channel = Channel(binding: refusal.binding)
        return try await challenged(by: proxy, head, response) { _ in }
    }

    private func challenged(
        by proxy: Proxy, _ head: HTTPHead, _ response: Response, _ setResting: (Bool) -> Void
    ) async throws(LoadError) -> Bool {
        // The caller set Proxy-Authorization, so the 407 is the caller's.
        guard proxy.authorization == nil else { return false }
        let server = Authenticator.Server(proxy)
        var side = proxies[server] ?? Side()
        side.login = proxy.login
        proxies[server] = side
        let given = proxy.credential
        // The credential has been sent as Basic already.
        if proxy.login == nil, !proxy.waitsForQuestion, side.refusals.isEmpty { basicRefused = given }
        setResting(true)
        defer { setResting(false) }
        guard let login = try await answer(side, server, head, response, given) else { return false }
        proxies[server]?.login = login
        return true
    }
    /// The proxy's configured credential, refused as Basic and perhaps valid for Digest.
    var basicRefused: Credential?

    private func accepted(_ side: inout Side) async {
        guard let login = side.login, side.issue == nil else { return }
        side.login = nil
        await remember(login)
    }

    /// The proxies have opened a tunnel for a protocol other than HTTP.
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
    /// Whether a proxy keeps the connections of its clients apart (RFC 4559 §6).
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
