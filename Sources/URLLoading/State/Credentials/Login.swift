// SPDX-License-Identifier: Apache-2.0

// A credential in use for a protection space, with the state that changes between requests: the Digest nonce and its
// use count. Shared by all loads that use it, so that no count is used twice.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class Login: Sendable {
    let space: ProtectionSpace
    let credential: Credential
    /// The place from which the credential came.
    enum Source: Sendable {
        /// A URL; the credential is sent only with URLs that contain it.
        case url
        /// A decision, so the session may have to store it.
        case decision
        /// A store, a token, or a ticket.
        case store
    }
    private let source: Source
    var isOfURL: Bool { source == .url }
    var isAnswer: Bool { source == .decision }
    /// For a proxy: the credential in the proxy's address that this login replaces. The login is sent only to proxies
    /// with that address, so that one proxy user's login does not serve another.
    let instead: Credential?
    /// The rank of the scheme (`AuthenticationOffer.strength`).
    let strength: Int
    /// The path prefixes of requests that carry this login without being challenged.
    let paths: [String]
    /// The folder of the challenged path. Below it this login precedes those of folders above it, regardless of
    /// `paths`.
    private let folder: String
    private enum Scheme: Sendable {
        case fixed(String)
        case digest, negotiate, ntlm
    }
    private let scheme: Scheme
    private let digest: Lock<DigestUse?>

    private struct DigestUse: Sendable {
        var challenge: DigestChallenge
        var count: UInt32 = 0
        var cnonce = Login.random()
    }

    /// Fails if the scheme cannot carry the credential.
    init?(
        _ offer: AuthenticationOffer, _ space: ProtectionSpace, _ credential: Credential, from source: Source = .store,
        path: String, instead: Credential? = nil
    ) {
        folder = String(path[..<(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.endIndex)])
        switch offer {
        case .basic:
            guard credential.token == nil,
                let value = BasicAuthorization.value(user: credential.user, password: credential.password)
            else { return nil }
            scheme = .fixed(value)
            digest = Lock(nil)
            // RFC 7617 §2.2.
            paths = [folder]
        case .bearer:
            guard let token = credential.token, let value = BearerAuthorization.value(token: token) else { return nil }
            scheme = .fixed(value)
            digest = Lock(nil)
            paths = ["/"]
        case .digest(let challenge):
            guard credential.token == nil, Self.kind(challenge.hash).hex([]) != nil else { return nil }
            scheme = .digest
            digest = Lock(DigestUse(challenge: challenge))
            paths = Self.paths(challenge.domain, space)
        case .negotiate:
            guard credential.token == nil else { return nil }
            scheme = .negotiate
            digest = Lock(nil)
            paths = ["/"]
        case .ntlm:
            guard credential.token == nil else { return nil }
            scheme = .ntlm
            digest = Lock(nil)
            paths = ["/"]
        }
        let makesTickets = if case .negotiate = offer { !credential.user.isEmpty } else { false }
        ticketCredential =
            makesTickets ? TicketLibrary.shared?.credential(user: credential.user, password: credential.password) : nil
        self.space = space
        self.credential = credential
        self.source = source
        self.instead = instead
        strength = offer.strength
    }

    /// RFC 7616 §3.3: the whole origin unless `domain` lists paths. URIs of other origins in `domain` are ignored: a
    /// server must not direct a credential to another one.
    private static func paths(_ domain: [String], _ space: ProtectionSpace) -> [String] {
        guard !domain.isEmpty, !space.isProxy else { return ["/"] }
        return domain.prefix(32).compactMap { text in
            if text.hasPrefix("/"), !text.hasPrefix("//") { return text }
            guard let target = try? Target(text), target.origin.scheme == space.scheme,
                "\(target.origin.host)" == space.host, Int(target.origin.port) == space.port
            else { return nil }
            return String(decoding: target.originForm, as: UTF8.self)
        }
    }

    /// Whether the login may be sent with a request whose URL, or to a proxy whose address, contains this credential.
    func serves(_ own: Credential?) -> Bool {
        guard let expected = isOfURL ? credential : instead else { return own == nil && !isOfURL }
        return own.map { $0.proves(sameAs: expected) } ?? false
    }

    /// Negotiate: a token is generated for each request, on a thread that may block.
    var usesTickets: Bool { if case .negotiate = scheme { true } else { false } }

    /// The login authenticates a connection instead of a request: requests of other identities must not use that
    /// connection.
    var opensConnections: Bool {
        switch scheme {
        case .negotiate, .ntlm: true
        case .fixed, .digest: false
        }
    }

    /// The authentication takes more than one message.
    var isMultiRound: Bool { if case .ntlm = scheme { true } else { needsMore.load(ordering: .relaxed) } }
    private let needsMore = Atomic(false)

    /// Notes that the server asked for a further token after the first.
    func noteFurtherMessage() { needsMore.store(true, ordering: .relaxed) }

    /// The Kerberos credential made of a user and password; `nil` uses the tickets in this user's cache.
    let ticketCredential: TicketCredential?

    /// Takes the first token, which was generated to find out whether a ticket is available.
    func takeBegunTicket() -> TicketProof.Begun? { begunTicket.withLock { $0.take() } }
    func keep(_ begun: TicketProof.Begun) { begunTicket.withLock { $0 = begun } }
    private let begunTicket = Lock<TicketProof.Begun?>(nil)

    /// Whether a forwarding proxy announced that it keeps the connections of its clients apart (RFC 4559 §6).
    var forwardersKeepConnectionsApart: Bool { forwarding.load(ordering: .relaxed) }
    func passForwarders() { forwarding.store(true, ordering: .relaxed) }
    private let forwarding = Atomic(false)

    /// The login is valid for one load; a connection authenticated with it is not reused.
    var isForOneLoad: Bool { credential.persistence == .none && !isOfURL }

    /// Returns the value of Authorization or Proxy-Authorization for one request.
    /// - Parameter body: the digest of the request's body; evaluated only if the proof covers it.
    /// - Returns: `nil` if the scheme cannot authenticate this request.
    func authorization(_ method: String, _ target: [UInt8], body: @autoclosure () -> [UInt8]?) -> String? {
        if case .fixed(let value) = scheme { return value }
        guard let digest = digestAuthorization() else { return nil }
        return digest.value(method: method, target: target, body: digest.challenge.needsBody ? body() : nil)
    }

    /// The current Digest challenge; `nil` for another scheme.
    var digestChallenge: DigestChallenge? { digest.withLock { $0?.challenge } }

    /// Returns the Digest authorization for one request, with the next count; `nil` for another scheme.
    func digestAuthorization() -> DigestAuthorization? {
        let use = digest.withLock { use -> DigestUse? in
            guard use != nil else { return nil }
            use?.count &+= 1
            // With -sess the cnonce is part of the session key, so it stays as long as the nonce.
            if use?.challenge.isSession == false { use?.cnonce = Self.random() }
            return use
        }
        guard let use else { return nil }
        return DigestAuthorization(
            use.challenge, user: credential.user, password: credential.password, cnonce: use.cnonce, count: use.count,
            hash: { Self.kind($0).hex($1) ?? "" })
    }

    /// Takes the next nonce from a response (RFC 7616 §3.5).
    func learn(from head: HTTPHead) {
        guard case .digest = scheme,
            let text = head.headers[space.isProxy ? .proxyAuthenticationInfo : .authenticationInfo],
            let nonce = AuthenticationChallenge.information(text)?["nextnonce"]
        else { return }
        digest.withLock { use in
            guard var challenge = use?.challenge, challenge.nonce != nonce else { return }
            challenge.nonce = nonce
            use = DigestUse(challenge: challenge)
        }
    }

    /// Continues with a new nonce after a challenge that calls the old one stale. Returns false if no offer does.
    func renew(from offers: [AuthenticationOffer]) -> Bool {
        for case .digest(let challenge) in offers where challenge.isStale && challenge.realm == space.realm {
            let isSame = digest.withLock { use in
                guard let old = use?.challenge, old.hash == challenge.hash, !challenge.isWeaker(than: old) else {
                    return false
                }
                // A repeated nonce is not a new one.
                guard old.nonce != challenge.nonce else { return false }
                use = DigestUse(challenge: challenge)
                return true
            }
            if isSame { return true }
        }
        return false
    }

    /// Returns the length of the longest matching path prefix; `nil` if no prefix matches.
    func coverage(of path: String) -> Int? {
        guard let count = paths.filter({ Self.isPath($0, of: path) }).map(\.utf8.count).max() else { return nil }
        return Self.isPath(folder, of: path) ? max(count, folder.utf8.count) : count
    }

    private static func isPath(_ part: String, of path: String) -> Bool {
        path == part || path.hasPrefix(part.hasSuffix("/") ? part : part + "/")
    }

    static func kind(_ hash: DigestChallenge.Hash) -> DigestHash {
        switch hash {
        case .md5: .md5
        case .sha256: .sha256
        case .sha512_256: .sha512_256
        }
    }

    /// Returns 128 bits of the system's random generator.
    private static func random() -> String {
        let words = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        return String(words.0, radix: 36) + String(words.1, radix: 36)
    }
}

extension Login: Hashable {
    static func == (a: Login, b: Login) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
