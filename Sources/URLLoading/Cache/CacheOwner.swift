// Whose a stored response is beyond what Vary says: credentials and cookies of the caller, a login of the session, a
// client certificate, cookies of a store; by which checks its server was believed, and by which way it was reached.
// Kept among what tells variants apart, under names that no field can have, and as digests: a cache's file is no proof
// of an identity.

import URLLoadingIO
import URLLoadingWire

enum CacheOwner {
    /// The store whose cookies were sent: what they opened is for those alone who have them.
    static let cookies = "(cookies)"
    /// The Cookie field that the caller wrote, as a digest: it names a user as Authorization does.
    static let ownCookie = "(cookie)"
    /// The host that the caller's Host field named in place of the URL's: another site of the same server.
    static let host = "(host)"
    /// The session whose own resolver or proxies led to the server.
    static let route = "(route)"
    /// Why an address policy keeps a session from a stored response. No mark: where a response came from tells no
    /// variants apart.
    static let address = "(address)"
    /// Other checks than the usual: whoever believes a server by these has nothing for those who would not.
    static let trust = "(trust)"
    /// The certificate of the server that answered: who decides himself whom to trust is given nothing of servers that he has
    /// not let pass.
    static let server = "(server)"
    /// In the place of a certificate: several servers.
    static let servers = "several"
    static let names: Set<String> = [Varying.identity, cookies, ownCookie, host, trust, server, route]

    /// Whether nobody can have the marks after this session and its stores.
    static func isPassing(_ varying: [String: String?]) -> Bool {
        if let owner = varying[Varying.identity] ?? nil, owner.hasPrefix(prefix) { return true }
        if let store = varying[cookies] ?? nil, store.hasPrefix("memory ") { return true }
        return (varying[route] ?? nil) != nil
    }

    /// Whether it is somebody's by what no request shows.
    static func isHidden(_ varying: [String: String?]) -> Bool {
        [cookies, trust, route].contains { (varying[$0] ?? nil) != nil }
    }

    fileprivate static let prefix = "session:"
}

extension CacheQuery {
    /// Adds the marks of what the caller's own fields and URL say.
    func markOwn(_ varying: inout [String: String?]) {
        if let identity { varying[Varying.identity] = .some(identity) }
        if let ownCookie { varying[CacheOwner.ownCookie] = .some(ownCookie) }
        if let host { varying[CacheOwner.host] = .some(host) }
    }

    /// Adds the marks of what the request carried besides, and of its server and way.
    /// - Returns: false if the answer is for this load alone.
    func mark(_ varying: inout [String: String?], _ provenance: Provenance) -> Bool {
        if let trust { varying[CacheOwner.trust] = .some(trust) }
        if let server = provenance.server, isSecure { varying[CacheOwner.server] = .some(server) }
        if provenance.isPrivatelyRouted {
            guard let user else { return false }
            varying[CacheOwner.route] = .some(user.cacheMark)
        }
        if provenance.carried.hasCookies {
            guard let cookies else { return false }
            varying[CacheOwner.cookies] = .some(cookies)
        }
        let login = provenance.carried.login
        let isCertified = provenance.hasCertificate
        guard login != nil || isCertified else { return true }
        if let login, login.isAnswer, login.credential.persistence == .none { return false }
        if let login, isOther(login.credential) { return false }
        guard identity == nil || isCertified else { return true }
        let who = identity ?? (login?.credential).map(Self.words)
        guard let mark = mark(who, isCertified: isCertified) else { return false }
        varying[Varying.identity] = .some(mark)
        return true
    }

    /// Whether a credential is not the one that the URL says: netrc or a decision may know another for its user, and
    /// another caller of the same URL may know none.
    private func isOther(_ credential: Credential) -> Bool {
        guard identity != nil, case .success(let destination) = request.destination, let user = destination.target.user
        else { return false }
        return credential.user != user || credential.password != destination.target.password ?? ""
    }

    private var isSecure: Bool {
        if case .success(let destination) = request.destination { destination.target.origin.isSecure } else { false }
    }

    /// Whether an answer that was got in this way says nothing to or of others than a stored response is for.
    func isForOwner(of stored: StoredResponse, _ provenance: Provenance) -> Bool {
        var marks: [String: String?] = [:]
        guard !provenance.isForced, mark(&marks, provenance) else { return false }
        // Of certificates `CacheLine.isServer` knows more.
        return marks.allSatisfy { $0.key == CacheOwner.server || (stored.varying[$0.key] ?? nil) == $0.value }
    }

    /// Whether the session's address policy would let this request go where a stored response came from.
    func allows(_ source: AnswerSource) -> Bool {
        guard let user, !user.addressPolicy.isOpen,
            case .success(let destination) = request.destination
        else { return true }
        let host = user.connectedHost(of: destination.target.origin)
        return source.isAllowed(by: user.addressPolicy, to: host)
    }

    /// By what it is somebody else's; `nil` if it is not.
    func stranger(to kept: [String: String?]) -> String? {
        if (kept[CacheOwner.ownCookie] ?? nil) != ownCookie { return CacheOwner.ownCookie }
        if (kept[CacheOwner.host] ?? nil) != host { return CacheOwner.host }
        if !isPartial {
            if (kept[CacheOwner.trust] ?? nil) != trust { return CacheOwner.trust }
            if let store = kept[CacheOwner.cookies] ?? nil, store != cookies { return CacheOwner.cookies }
            if let session = kept[CacheOwner.route] ?? nil, session != user?.cacheMark { return CacheOwner.route }
            if let believed, let server = kept[CacheOwner.server] ?? nil, !believed.contains(server) {
                return CacheOwner.server
            }
        }
        let owner = kept[Varying.identity] ?? nil
        return owner == identity || isMark(owner) ? nil : Varying.identity
    }

    /// Whether it was got by what this request will show as well.
    private func isMark(_ owner: String?) -> Bool {
        guard let owner, owner.hasPrefix(CacheOwner.prefix) else { return false }
        let who = identity ?? login.map(Self.words)
        if identity == nil, who != nil, owner == mark(who, isCertified: false) { return true }
        return owner == mark(who, isCertified: true)
    }

    /// A client certificate, given by the configuration or by a decision, is that of all who ask through the same session,
    /// the same decision and the same TLS settings, as their connections are (`Route.Trust`).
    private func mark(_ who: String?, isCertified: Bool) -> String? {
        guard let user else { return nil }
        var words = "\(user.cacheMark)\u{0}\(who ?? "")"
        if isCertified {
            words += "\u{0}\(user.trustMark)"
        }
        return CacheOwner.prefix + Digest.hex(words.utf8)
    }

    private static func words(_ credential: Credential) -> String {
        "\(credential.user)\u{0}\(credential.password)\u{0}\(credential.token ?? "")"
    }

    /// What will go with the request unasked (`AuthenticationTalk.begin`). Of a keeper's tokens the present one is not
    /// known here, and may be another person's than the last: what they open is found while the same is in use.
    private var login: Credential? {
        guard let user, case .success(let destination) = request.destination else {
            return nil
        }
        return user.credentialSentUnasked(to: destination)
    }
}

/// The session on whose behalf the cache is asked.
protocol CacheUser: Sendable {
    /// Names the session in the marks of responses that only it may have.
    var cacheMark: String { get }
    var addressPolicy: AddressPolicy { get }
    /// The host that connections to an origin are made to.
    func connectedHost(of origin: Origin) -> Origin.Host
    /// Names the settings by which servers are trusted.
    var trustMark: String { get }
    /// The credential that a request carries without being challenged; nil without one.
    func credentialSentUnasked(to destination: Destination) -> Credential?
}
