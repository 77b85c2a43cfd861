// Whose a stored response is, where its request does not show it: a login of the session's, a client certificate, cookies
// of a store; and by which checks its server was believed. Kept among what tells variants apart, under names that no
// field can have, and as digests: a cache's file proves nobody's identity.

import URLLoadingIO
import URLLoadingWire

enum CacheOwner {
    /// What a request showed besides what its caller wrote into it.
    struct Shown: Sendable {
        var login: Login?
        var hasCookies = false
        var hasCertificate = false
        /// The server that answered is trusted by a decision alone.
        var isForced = false
        /// The certificate by which the server was believed.
        var server: String?
    }

    /// The store whose cookies were sent: what they opened is for those alone who have them.
    static let cookies = "(cookies)"
    /// Other checks than the usual: whoever believes a server by these has nothing for those who would not.
    static let trust = "(trust)"
    /// The certificate of the server that answered: who decides himself whom to trust is given nothing of servers that he has
    /// not let pass.
    static let server = "(server)"
    static let names: Set<String> = [Varying.identity, cookies, trust, server]

    /// Whether nobody can have the marks after this session and its stores.
    static func isPassing(_ varying: [String: String?]) -> Bool {
        if let owner = varying[Varying.identity] ?? nil, owner.hasPrefix(prefix) { return true }
        if let store = varying[cookies] ?? nil, store.hasPrefix("memory ") { return true }
        return false
    }

    /// Whether it is somebody's by what no request shows.
    static func isHidden(_ varying: [String: String?]) -> Bool { (varying[cookies] ?? nil) != nil || (varying[trust] ?? nil) != nil }

    fileprivate static let prefix = "session:"

    /// What sessions have to have in common to believe each other's answers; `nil` for what is usual.
    static func trust(_ configuration: Configuration) -> String? {
        let tls = configuration.tls
        var words: [String] = []
        if tls.roots != .system { words.append("roots \(tls.roots)") }
        if !tls.pins.isEmpty { words.append("pins \(tls.pins)") }
        if tls.minimumVersion != .tls12 { words.append("from \(tls.minimumVersion)") }
        if tls.strength != .bits112 { words.append("strength \(tls.strength)") }
        if tls.stapledStatus != .ignored { words.append("status \(tls.stapledStatus)") }
        if tls.unsafelySkipsVerification { words.append("none") }
        if configuration.addressOverrides != [] { words.append("at \(configuration.addressOverrides)") }
        return words.isEmpty ? nil : Digest.hex(words.joined(separator: "\u{0}").utf8)
    }
}

extension CacheQuery {
    /// Marks what is to be stored as its owner's; `false` if it is for nobody but this load.
    func mark(_ varying: inout [String: String?], _ shown: CacheOwner.Shown) -> Bool {
        if let trust { varying[CacheOwner.trust] = .some(trust) }
        if let server = shown.server { varying[CacheOwner.server] = .some(server) }
        if shown.hasCookies {
            guard let cookies else { return false }
            varying[CacheOwner.cookies] = .some(cookies)
        }
        guard shown.login != nil || shown.hasCertificate else { return true }
        if let login = shown.login, login.isAnswer, login.credential.persistence == .none { return false }
        guard identity == nil || shown.hasCertificate else { return true }
        guard let mark = mark(identity ?? (shown.login?.credential).map(Self.words), isCertified: shown.hasCertificate) else { return false }
        varying[Varying.identity] = .some(mark)
        return true
    }

    /// By what it is somebody else's; `nil` if it is not.
    func stranger(to kept: [String: String?]) -> String? {
        if !isPartial {
            if (kept[CacheOwner.trust] ?? nil) != trust { return CacheOwner.trust }
            if let store = kept[CacheOwner.cookies] ?? nil, store != cookies { return CacheOwner.cookies }
            if let believed, let server = kept[CacheOwner.server] ?? nil, !believed.contains(server) { return CacheOwner.server }
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
        guard let load else { return nil }
        var words = "\(load.core.cacheMark)\u{0}\(who ?? "")"
        if isCertified { words += "\u{0}\(load.core.pool.connector.secure.generation)/\(load.handshakeDecision?.group ?? 0)" }
        return CacheOwner.prefix + Digest.hex(words.utf8)
    }

    private static func words(_ credential: Credential) -> String {
        "\(credential.user)\u{0}\(credential.password)\u{0}\(credential.token ?? "")"
    }

    /// What will go with the request unasked (`AuthenticationTalk.begin`). Of a keeper's tokens the present one is not
    /// known here, and may be another person's than the last: what they open is found while the same is in use.
    private var login: Credential? {
        guard let load, load.core.authenticator.isInUse, case .success(let destination) = request.destination else { return nil }
        return load.core.authenticator.unasked(destination)
    }
}
