public import Foundation
public import URLLoading

/// What proves who somebody is: a user's password, a client's certificate, or the word that a server is to be trusted.
///
/// ```swift
/// completionHandler(.useCredential, URLCredential(user: "ada", password: "secret", persistence: .forSession))
/// ```
/// It has no archive that shows the password to anybody: archived, it is readable by whoever has the archive.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// How long it is kept once it was used.
    public enum Persistence: UInt, Sendable {
        /// Not at all.
        case none = 0
        /// As long as the process lives.
        case forSession = 1
        /// In the file of ``URLCredentialStorage``.
        case permanent = 2
        /// As ``permanent``: nothing is shared with other machines.
        @available(*, deprecated, message: "The same as permanent: nothing is shared with other machines")
        case synchronizable = 3
    }

    private enum Kind: Sendable {
        case password(user: String, password: String)
        case trust(ServerTrust)
        case identity(ClientIdentity)
    }
    private let kind: Kind
    /// How long it is kept once it was used.
    open var persistence: Persistence { keeps }
    private let keeps: Persistence

    public init(user: String, password: String, persistence: URLCredential.Persistence) {
        kind = .password(user: user, password: password)
        keeps = persistence
    }

    /// Accepts a server: the answer to a challenge of `NSURLAuthenticationMethodServerTrust`.
    ///
    /// Apple's takes a `SecTrust`; here it is what ``URLProtectionSpace/serverTrust`` gives.
    public init(trust: ServerTrust) {
        kind = .trust(trust)
        keeps = .none
    }

    /// A certificate and its key: the answer to a challenge of `NSURLAuthenticationMethodClientCertificate`.
    ///
    /// Apple's takes a `SecIdentity` and certificates; here the identity brings its chain.
    public init(identity: ClientIdentity, persistence: URLCredential.Persistence = .forSession) {
        kind = .identity(identity)
        keeps = persistence
    }

    convenience init(_ credential: Credential) {
        self.init(
            user: credential.user, password: credential.password, persistence: Persistence(credential.persistence))
    }

    /// The user's name; `nil` if it is no password.
    open var user: String? {
        if case .password(let user, _) = kind { user } else { nil }
    }
    open var password: String? {
        if case .password(_, let password) = kind { password } else { nil }
    }
    open var hasPassword: Bool { password != nil }
    /// The certificate and key, if it has them.
    public final var identity: ClientIdentity? {
        if case .identity(let identity) = kind { identity } else { nil }
    }

    /// What it answers to a challenge.
    final var decision: ChallengeDecision {
        switch kind {
        case .password(let user, let password):
            .use(Credential(user: user, password: password, persistence: Credential.Persistence(keeps)))
        case .trust(let trust): .accept(trust)
        case .identity(let identity): .present(identity)
        }
    }

    /// For a store; `nil` if it is no password.
    final var stored: Credential? {
        guard case .password(let user, let password) = kind else { return nil }
        return Credential(user: user, password: password, persistence: Credential.Persistence(keeps))
    }

    /// Whose it is, and never the password.
    open override var description: String { "<URLCredential \(user ?? (identity == nil ? "trust" : "identity"))>" }

    // MARK: Copying, comparing, archiving

    /// The same object: a credential does not change.
    open override func copy() -> Any { self }
    /// The same object: a credential does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential, keeps == other.keeps else { return false }
        return switch (kind, other.kind) {
        case (.password(let a, let b), .password(let c, let d)): a == c && b == d
        case (.trust(let a), .trust(let b)): a == b
        case (.identity, .identity): self === other
        default: false
        }
    }

    open override var hash: Int { user.hashValue }

    public static var supportsSecureCoding: Bool { true }

    /// Passwords alone can be archived.
    public required init?(coder aDecoder: NSCoder) {
        guard let user = aDecoder.decodeObject(of: NSString.self, forKey: "user"),
            let password = aDecoder.decodeObject(of: NSString.self, forKey: "password"),
            let keeps = UInt(exactly: aDecoder.decodeInteger(forKey: "persistence")).flatMap({
                Persistence(rawValue: $0)
            })
        else { return nil }
        kind = .password(user: "\(user)", password: "\(password)")
        self.keeps = keeps
    }

    open func encode(with aCoder: NSCoder) {
        aCoder.encode(user.map { $0 as NSString }, forKey: "user")
        aCoder.encode(password.map { $0 as NSString }, forKey: "password")
        aCoder.encode(Int(keeps.rawValue), forKey: "persistence")
    }
}

extension URLCredential.Persistence {
    init(_ persistence: Credential.Persistence) {
        self =
            switch persistence {
            case .none: .none
            case .session: .forSession
            case .permanent: .permanent
            }
    }
}

extension Credential.Persistence {
    init(_ persistence: URLCredential.Persistence) {
        self =
            switch persistence {
            case .none: .none
            case .forSession: .session
            default: .permanent
            }
    }
}
