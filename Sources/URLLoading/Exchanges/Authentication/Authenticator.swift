// SPDX-License-Identifier: Apache-2.0

// The logins of a session that were accepted, and the sources of its credentials. A load without a challenge reads one
// flag.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class Authenticator: CredentialUser, Sendable {
    /// False if no request can carry a credential without being challenged.
    var isInUse: Bool { flag.load(ordering: .relaxed) }
    private let flag: Atomic<Bool>
    private let state = Lock(State())
    let settings: Configuration.Authentication
    /// The credentials of this session only.
    private let memory: CredentialStore
    private let permanent: CredentialStore?
    private let netrc: NetrcReader?
    let bearer: SharedBearerToken?

    /// The server or proxy that authenticates the client.
    struct Server: Hashable, Sendable {
        let host: String
        let port: Int
        let scheme: String
        let isProxy: Bool

        init(_ origin: Origin) {
            (host, port, scheme, isProxy) = ("\(origin.host)", Int(origin.port), origin.scheme, false)
        }

        init(_ proxy: Proxy) {
            (host, port, scheme, isProxy) = (
                proxy.socketPath ?? "\(proxy.host)", Int(proxy.port), proxy.kind.rawValue, true
            )
        }

        init(_ space: ProtectionSpace) {
            (host, port, scheme, isProxy) = (space.host, space.port, space.scheme, space.isProxy)
        }

        /// The host is a name, under which a Kerberos service can be registered.
        var hasName: Bool {
            guard case .name? = (try? Origin.Host(host))?.kind else { return false }
            return !host.hasPrefix("/")
        }

        func space(_ offer: AuthenticationOffer) -> ProtectionSpace {
            ProtectionSpace(
                host: host, port: port, scheme: scheme, realm: offer.realm, method: offer.method, isProxy: isProxy)
        }
    }

    private struct State: Sendable {
        var logins: [Server: [Login]] = [:]
        /// The strongest scheme that each protection space accepted: no weaker one is used there without a decision, so
        /// that a server or attacker cannot downgrade the client.
        var strengths: [Server: SpaceStrengths] = [:]
        var removals = CredentialRemovals()
    }
    /// Limits the memory against many servers, or a server with a realm for every path. A login that is dropped costs
    /// one more challenge.
    private static let maximumPerServer = 32
    private static let maximumServers = 1024
    /// Higher, because a dropped strength would allow a weaker scheme than before: some 100 bytes each.
    private static let maximumStrengths = 65536
    var rememberedServers: Int { state.withLock { $0.logins.count } }

    init(_ configuration: Configuration) {
        settings = configuration.authentication
        memory = settings.credentialStore ?? CredentialStore()
        let isUsual = settings.credentialStore == nil && !configuration.isEphemeral
        permanent = isUsual ? SharedStores.of(configuration)?.credentials ?? .shared : nil
        netrc = settings.netrc.map { NetrcReader($0) }
        bearer = settings.bearer.map { SharedBearerToken($0) }
        flag = Atomic(settings.bearer != nil)
        memory.add(self)
        permanent?.add(self)
    }

    deinit {
        memory.remove(ObjectIdentifier(self))
        permanent?.remove(ObjectIdentifier(self))
    }

    /// Forgets the logins when the session ends. Only credentials in the configured store and permanent ones remain.
    func end() {
        forgetAll()
        state.withLock { $0.logins = [:] }
        if settings.credentialStore == nil { memory.removeAll() }
    }

    // MARK: Logins

    /// Returns the login that a request gets without being challenged: the one that covers its path most closely, and
    /// of equal ones the newest.
    /// - Parameters:
    ///   - url: the credential in the request's URL, or in a proxy's address; with one, only a login made of it, or
    ///     found in its place, is returned.
    ///   - isWanted: called under the lock.
    func login(at server: Server, path: String, url: Credential?, where isWanted: (Login) -> Bool = { _ in true })
        -> Login?
    {
        guard isInUse else { return nil }
        return state.withLock { state in
            var best: (login: Login, coverage: Int)?
            for login in state.logins[server] ?? [] where login.serves(url) && isWanted(login) {
                guard let coverage = login.coverage(of: path), coverage >= best?.coverage ?? 0 else { continue }
                best = (login, coverage)
            }
            return best?.login
        }
    }

    /// The credential that a request without one of its own gets without being challenged.
    func preemptiveCredential(for destination: Destination) -> Credential? {
        if let bearer, bearer.serves(destination.route.origin) {
            return bearer.present.map { .bearer($0, persistence: .none) }
        }
        let path = String(decoding: destination.target.originForm.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        return login(at: Server(destination.route.origin), path: path, url: nil)?.credential
    }

    /// Returns a proxy chain with logins for its proxies.
    func opened(_ proxyChain: ProxyChain, _ own: (Server) -> Login? = { _ in nil }) -> ProxyChain {
        guard proxyChain.proxies.contains(where: \.isHTTP) else { return proxyChain }
        return ProxyChain(
            proxyChain.proxies.map { proxy in
                guard proxy.isHTTP, proxy.authorization == nil else { return proxy }
                let server = Server(proxy)
                guard let login = own(server) ?? login(at: server, path: "/", url: proxy.credential) else {
                    return proxy
                }
                var opened = proxy
                opened.login = login
                return opened
            })
    }

    /// The number of removals of credentials so far. A load notes it before it logs in, for ``remember(_:since:)``.
    var removals: Int { state.withLock { $0.removals.count } }

    /// Remembers an accepted login for later requests of the session.
    /// - Parameter removals: how many removals there were before the load logged in.
    /// - Returns: false if the login was known already, or a store has removed its credential since.
    func remember(_ login: Login, since removals: Int) -> Bool {
        let isNew = state.withLock { state in
            guard login.isOfURL || !state.removals.contains(login, since: removals) else { return false }
            let server = Server(login.space)
            var logins = state.logins[server] ?? []
            if logins.contains(login) { return false }
            logins.removeAll { old in
                // Several users may occur in URLs, each with URLs of their own.
                old.space == login.space && old.paths == login.paths && old.isOfURL == login.isOfURL
                    && old.instead == login.instead && (!login.isOfURL || old.credential.user == login.credential.user)
            }
            if logins.count == Self.maximumPerServer { logins.removeFirst() }
            if logins.isEmpty, state.logins.count >= Self.maximumServers { state.logins.removeAll() }
            if state.strengths.count >= Self.maximumStrengths { state.strengths.removeAll() }
            state.logins[server] = logins + [login]
            state.strengths[server, default: SpaceStrengths()].note(login.strength, realm: login.space.realm)
            return true
        }
        flag.store(true, ordering: .relaxed)
        return isNew
    }

    func forget(_ login: Login) {
        state.withLock { $0.logins[Server(login.space)]?.removeAll { $0 === login } }
    }

    /// A store has removed a credential: forgets the logins made of it, with any scheme of the space.
    func forget(_ credential: Credential, for space: ProtectionSpace) {
        state.withLock { state in
            state.removals.note(credential, for: space)
            state.logins[Server(space)]?.removeAll { login in
                !login.isOfURL && login.credential.user == credential.user
                    && (space.realm == nil || login.space.realm == space.realm)
            }
        }
    }

    /// A store was emptied. Logins from URLs stay, because no store holds them.
    func forgetAll() {
        state.withLock { state in
            state.removals.noteAll()
            for server in Array(state.logins.keys) { state.logins[server]?.removeAll { !$0.isOfURL } }
        }
    }

    /// Whether a stronger scheme opened the protection space of this offer before.
    func isWeaker(_ offer: AuthenticationOffer, at server: Server) -> Bool {
        state.withLock {
            offer.strength > 0 && offer.strength < $0.strengths[server]?.strength(realm: offer.realm) ?? 0
        }
    }

    // MARK: Credentials

    /// The credential stored for a space. May read a file.
    func credential(for space: ProtectionSpace) -> Credential? {
        memory.credential(for: space) ?? permanent?.credential(for: space)
    }

    /// The credential stored for exactly this space. May read a file.
    func ownCredential(for space: ProtectionSpace) -> Credential? {
        memory.credentials(for: space).first ?? permanent?.credentials(for: space).first
    }

    /// The credential of the netrc file for a host; `nil` without one. May read the file.
    func netrcCredential(_ host: String, _ user: String?) -> Credential? { netrc?.credential(for: host, user: user) }

    /// Stores an accepted credential according to its persistence. May write a file.
    func keep(_ credential: Credential, for space: ProtectionSpace) {
        let store = credential.persistence == .permanent ? permanent ?? memory : memory
        let count = store.all.keys.count { $0 != space && Server($0) == Server(space) }
        guard count < Self.maximumPerServer else { return }
        store.set(credential, for: space)
    }
}
