// A credential that opens a protection space, and what of it changes from request to request: the nonce of Digest and
// how often it was used. Shared by all loads that use it, so that no count is used twice.

import Synchronization
import URLLoadingIO
import URLLoadingWire

final class Login: Sendable {
    let space: ProtectionSpace
    let credential: Credential
    /// It came with a URL, and goes with those URLs alone.
    let isOfURL: Bool
    /// Of a proxy: what its address says itself, in whose place this was found. Good for that address alone (security 17).
    let instead: Credential?
    /// A decision gave it, so it may have to be kept.
    let isAnswer: Bool
    /// Of the method it was accepted by.
    let strength: Int
    /// What the paths of requests begin with that get it unasked.
    let paths: [String]
    /// The folder of the path that it was asked for: below it this login goes before those of folders above it, whatever
    /// `paths` says.
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

    /// `nil` if the credential cannot be said in that way.
    init?(
        _ offer: AuthenticationOffer, _ space: ProtectionSpace, _ credential: Credential, isOfURL: Bool, path: String,
        isAnswer: Bool = false,
        instead: Credential? = nil
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
        self.isOfURL = isOfURL
        self.isAnswer = isAnswer
        self.instead = instead
        strength = offer.strength
    }

    /// RFC 7616 §3.3: the whole origin unless `domain` says where. What it says of other origins is nothing to us
    /// (security 8).
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

    /// Whether it may be said where this is what the URL, or a proxy's address, says.
    func serves(_ own: Credential?) -> Bool {
        guard let expected = isOfURL ? credential : instead else { return own == nil && !isOfURL }
        return own.map { $0.proves(sameAs: expected) } ?? false
    }

    /// Its token is made for each request, by whoever may block.
    var isTicket: Bool { if case .negotiate = scheme { true } else { false } }

    /// It opens a connection, and not a request alone: nobody else's requests may go there (security 12, 13).
    var opensConnections: Bool {
        switch scheme {
        case .negotiate, .ntlm: true
        case .fixed, .digest: false
        }
    }

    /// It takes more than one message to open one.
    var takesLegs: Bool { if case .ntlm = scheme { true } else { needsMore.load(ordering: .relaxed) } }
    private let needsMore = Atomic(false)

    /// The server of a ticket was not content with the first.
    func takeLegs() { needsMore.store(true, ordering: .relaxed) }

    /// What the password of a ticket's user is good for; `nil` uses the tickets in this user's cache.
    let ticketCredential: TicketCredential?

    /// A ticket's first token, made to see whether there is one: whoever takes it says it.
    func takeBegunTicket() -> TicketProof.Begun? { begunTicket.withLock { $0.take() } }
    func keep(_ begun: TicketProof.Begun) { begunTicket.withLock { $0 = begun } }
    private let begunTicket = Lock<TicketProof.Begun?>(nil)

    /// What it opens stays open through a proxy that gets the requests themselves: it says that it keeps the connections of
    /// its clients apart (RFC 4559 §6).
    func mayPass(_ forwarder: Proxy?) -> Bool {
        guard let forwarder else { return true }
        return forwarding.load(ordering: .relaxed) && forwarder.login?.opensConnections != true
    }
    func passForwarders() { forwarding.store(true, ordering: .relaxed) }
    private let forwarding = Atomic(false)

    /// Good for one load; what it has opened is nobody else's.
    var isForOneLoad: Bool { credential.persistence == .none && !isOfURL }

    /// The value of Authorization or Proxy-Authorization for one request.
    /// - Parameter body: of the request, if it is known before it is sent. Asked for only where it is proved too.
    /// - Returns: `nil` if this request cannot be proved that way.
    func authorization(_ method: String, _ target: [UInt8], body: @autoclosure () -> [UInt8]?) -> String? {
        if case .fixed(let value) = scheme { return value }
        guard let digest = digestAuthorization() else { return nil }
        return digest.value(method: method, target: target, body: digest.challenge.needsBody ? body() : nil)
    }

    /// What Digest was asked for last; `nil` if it is another way.
    var digestChallenge: DigestChallenge? { digest.withLock { $0?.challenge } }

    /// What Digest says for one request; `nil` if it is another way.
    func digestAuthorization() -> DigestAuthorization? {
        let use = digest.withLock { use -> DigestUse? in
            guard use != nil else { return nil }
            use?.count &+= 1
            // With -sess it is part of the key that belongs to the nonce.
            if use?.challenge.isSession == false { use?.cnonce = Self.random() }
            return use
        }
        guard let use else { return nil }
        return DigestAuthorization(
            use.challenge, user: credential.user, password: credential.password, cnonce: use.cnonce, count: use.count,
            hash: { Self.kind($0).hex($1) ?? "" })
    }

    /// What an answer says of the next request (RFC 7616 §3.5).
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

    /// The nonce was too old: the same credential goes on with another. Returns false if that is not what is offered.
    func renew(from offers: [AuthenticationOffer]) -> Bool {
        for case .digest(let challenge) in offers where challenge.isStale && challenge.realm == space.realm {
            let isSame = digest.withLock { use in
                guard let old = use?.challenge, old.hash == challenge.hash, !challenge.provesLess(than: old) else {
                    return false
                }
                // The same nonce once more is no new one.
                guard old.nonce != challenge.nonce else { return false }
                use = DigestUse(challenge: challenge)
                return true
            }
            if isSame { return true }
        }
        return false
    }

    /// How much of a path is covered; `nil` if none of it is.
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

    /// 128 bits of the system's generator.
    private static func random() -> String {
        let words = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        return String(words.0, radix: 36) + String(words.1, radix: 36)
    }
}

extension Login: Hashable {
    static func == (a: Login, b: Login) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
