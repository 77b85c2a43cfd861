// SPDX-License-Identifier: Apache-2.0

// The owner of a stored response beyond what Vary says: the caller's credentials and cookies, a login of the session, a
// client certificate, cookies of a store, the checks by which the server was trusted, and the route to it. The marks
// stand among the varying fields, under names that no field can have, and as digests: a cache file must not reveal
// credentials.

import URLLoadingIO
import URLLoadingWire

enum CacheOwner {
    /// The store whose cookies were sent: only sessions with that store may use the response.
    static let cookies = "(cookies)"
    /// The Cookie field that the caller wrote, as a digest: it names a user as Authorization does.
    static let ownCookie = "(cookie)"
    /// The host that the caller's Host field named in place of the URL's: another site of the same server.
    static let host = "(host)"
    /// The session whose own resolver or proxies led to the server.
    static let route = "(route)"
    /// The reason given when an address policy forbids a stored response. Never stored as a mark: the source of a
    /// response does not distinguish variants.
    static let address = "(address)"
    /// Non-default TLS checks: a response from a server trusted by these is not served to sessions with other checks.
    static let trust = "(trust)"
    /// The certificate of the server that answered: a session that decides about servers gets only responses of servers
    /// that its decision accepted.
    static let server = "(server)"
    /// Several servers, in place of one certificate.
    static let servers = "several"
    static let names: Set<String> = [Varying.identity, cookies, ownCookie, host, trust, server, route]

    /// Whether the marks can match no request after this session and its stores are gone.
    static func isTemporary(_ varying: [String: String?]) -> Bool {
        if let owner = varying[Varying.identity] ?? nil, owner.hasPrefix(prefix) { return true }
        if let store = varying[cookies] ?? nil, store.hasPrefix("memory ") { return true }
        return (varying[route] ?? nil) != nil
    }

    /// Whether the owner is determined by something that no request field shows.
    static func isHidden(_ varying: [String: String?]) -> Bool {
        [cookies, trust, route].contains { (varying[$0] ?? nil) != nil }
    }

    fileprivate static let prefix = "session:"
}

/// The checks that a session's servers must pass. An object, because each query has them, and is copied often.
final class TrustChecks: Sendable {
    /// A digest of the settings (`CacheOwner.trust`); `nil` for the defaults.
    let mark: String?
    /// The number of the settings (`SecureContext`): what came over a connection with another one is not stored under
    /// this mark.
    let number: Int
    /// Whether servers pass that would not without a setting whose name says that it is unsafe.
    let areWeakened: Bool

    init(mark: String?, number: Int, areWeakened: Bool) {
        (self.mark, self.number, self.areWeakened) = (mark, number, areWeakened)
    }
}

extension CacheQuery {
    /// Adds the marks of the caller's own fields and of the URL.
    func markOwn(_ varying: inout [String: String?]) {
        if let identity { varying[Varying.identity] = .some(identity) }
        if let ownCookie { varying[CacheOwner.ownCookie] = .some(ownCookie) }
        if let host { varying[CacheOwner.host] = .some(host) }
    }

    /// Adds the marks of everything else that the request carried, of its server and of its route.
    /// - Returns: false if only this load may use the answer.
    func mark(_ varying: inout [String: String?], _ provenance: Provenance) -> Bool {
        guard !provenance.isRepaired, isChecked(provenance) else { return false }
        if let trust = checks?.mark { varying[CacheOwner.trust] = .some(trust) }
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
        let isSigned = provenance.carried.signature != .none
        guard login != nil || isCertified || isSigned else { return true }
        if let login, login.isAnswer, login.credential.persistence == .none { return false }
        if let login, differsFromURL(login.credential) { return false }
        guard identity == nil || isCertified || isSigned else { return true }
        let holder = identity ?? (login?.credential).map(Self.words)
        guard let mark = mark(holder, isCertified: isCertified, isSigned: isSigned) else { return false }
        varying[Varying.identity] = .some(mark)
        return true
    }

    /// Whether a credential differs from the one in the URL: netrc or a decision may supply another for the URL's user,
    /// and another caller of the same URL may have none.
    private func differsFromURL(_ credential: Credential) -> Bool {
        guard identity != nil, case .success(let destination) = request.destination, let user = destination.target.user
        else { return false }
        return credential.user != user || credential.password != destination.target.password ?? ""
    }

    /// Whether the server was verified by the checks of this query: a session's TLS settings may have been renewed
    /// since.
    private func isChecked(_ provenance: Provenance) -> Bool {
        guard let own = checks?.number, let its = provenance.settingsNumber else { return true }
        return own == its
    }

    /// Whether a body might be truncated without a sign of it: it ends with a connection that has no TLS, or whose end
    /// without close_notify is conceded. A stored part would be served as the whole while it is fresh (RFC 9112 §8).
    func mayBeCut(_ provenance: Provenance) -> Bool {
        switch provenance.bodyEnd {
        case .marked: false
        case .connection: !isSecure
        case .concededConnection: true
        }
    }

    private var isSecure: Bool {
        if case .success(let destination) = request.destination { destination.target.origin.isSecure } else { false }
    }

    /// Whether an exchange has the same owner as a stored response, so that its answer may update that response.
    func isForOwner(of stored: StoredResponse, _ provenance: Provenance) -> Bool {
        var marks: [String: String?] = [:]
        guard !provenance.isForced, mark(&marks, provenance) else { return false }
        // Certificates are compared by `CacheFetch.isServer`.
        return marks.allSatisfy { $0.key == CacheOwner.server || (stored.varying[$0.key] ?? nil) == $0.value }
    }

    /// Whether the session's address policy allows a connection to every server that a stored response came from.
    func allows(_ source: AnswerSource) -> Bool {
        guard isRestricted, let user, case .success(let destination) = request.destination
        else { return true }
        let host = user.connectedHost(of: destination.target.origin)
        return source.isAllowed(by: user.addressPolicy, to: host)
    }

    /// Returns the name of the first mark in which a stored response has another owner than this request; `nil` if
    /// none.
    func differingMark(from kept: [String: String?]) -> String? {
        if kept.isEmpty, !hasMarks { return nil }
        if (kept[CacheOwner.ownCookie] ?? nil) != ownCookie { return CacheOwner.ownCookie }
        if (kept[CacheOwner.host] ?? nil) != host { return CacheOwner.host }
        if !isPartial {
            if (kept[CacheOwner.trust] ?? nil) != checks?.mark { return CacheOwner.trust }
            if let store = kept[CacheOwner.cookies] ?? nil, store != cookies { return CacheOwner.cookies }
            if let session = kept[CacheOwner.route] ?? nil, session != user?.cacheMark { return CacheOwner.route }
            if let acceptedCertificates, let server = kept[CacheOwner.server] ?? nil,
                !acceptedCertificates.contains(server)
            {
                return CacheOwner.server
            }
        }
        let owner = kept[Varying.identity] ?? nil
        return owner == identity || isMark(owner) ? nil : Varying.identity
    }

    /// Returns the first field that a signature may add to this request, and by which a response to a request without a
    /// signature varies; nil if none. The field is added after the lookup, so the request alone does not show it.
    func signedField(in stored: StoredResponse) -> String? {
        guard (stored.varying[Varying.identity] ?? nil) == identity, case .names(let names)? = VaryField(stored.headers)
        else { return nil }
        return names.first {
            [Varying.identity, "signature", "signature-input"].contains($0)
                && !($0 == Varying.identity && identity != nil)
                || $0.hasPrefix("x-amz-")
        }
    }

    /// Whether the response was obtained with the login, certificate or signer that this request will use.
    private func isMark(_ owner: String?) -> Bool {
        guard let owner, owner.hasPrefix(CacheOwner.prefix) else { return false }
        let holder = identity ?? login.map(Self.words)
        if identity == nil, holder != nil, owner == mark(holder, isCertified: false) { return true }
        if owner == mark(holder, isCertified: true) { return true }
        guard user?.signerMark != nil else { return false }
        return [false, true].contains { owner == mark(holder, isCertified: $0, isSigned: true) }
    }

    /// The mark of a login, of a client certificate and of a signer. A certificate counts as that of all requests of
    /// the same session, decision and TLS settings, as it does for shared connections (`Route.Trust`); a signature as
    /// that of all requests with the same decision.
    private func mark(_ holder: String?, isCertified: Bool, isSigned: Bool = false) -> String? {
        guard let user else { return nil }
        var words = "\(user.cacheMark)\u{0}\(holder ?? "")"
        if isCertified {
            words += "\u{0}\(user.trustMark)"
        }
        if isSigned {
            guard let signer = user.signerMark else { return nil }
            words += "\u{0}signer \(signer)"
        }
        return CacheOwner.prefix + Digest.hex(words.utf8)
    }

    private static func words(_ credential: Credential) -> String {
        "\(credential.user)\u{0}\(credential.password)\u{0}\(credential.token ?? "")"
    }

    /// Whether the request will carry a login without being challenged.
    var willLogIn: Bool { login != nil }

    /// The credential that the request will carry without being challenged (`RequestAuthentication.begin`). The
    /// current token of a `SharedBearerToken` is not known here, and may belong to another user than the previous one:
    /// a response obtained with a token is found only while that token is in use.
    private var login: Credential? {
        guard let user, case .success(let destination) = request.destination else {
            return nil
        }
        return user.preemptiveCredential(for: destination)
    }
}

/// The session on whose behalf the cache is asked.
protocol CacheUser: AnyObject, Sendable {
    /// Names the session in the marks of responses that only it may have.
    var cacheMark: String { get }
    var addressPolicy: AddressPolicy { get }
    /// Whether that policy may refuse an address.
    var hasAddressPolicy: Bool { get }
    /// The host that connections to an origin are made to.
    func connectedHost(of origin: Origin) -> Origin.Host
    /// Names the settings by which servers are trusted.
    var trustMark: String { get }
    /// Names the decision that signs the requests; nil without one.
    var signerMark: Int? { get }
    /// The credential that a request carries without being challenged; nil without one.
    func preemptiveCredential(for destination: Destination) -> Credential?
}
