// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import URLLoading

/// The answer to a challenge: a user and password, a client certificate, or the decision to trust a server.
///
/// ```swift
/// completionHandler(.useCredential, URLCredential(user: "ada", password: "secret", persistence: .forSession))
/// ```
/// An archive holds the password in plain form: every reader of the archive can read it.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    /// How long a ``URLCredentialStorage`` keeps a credential.
    public enum Persistence: UInt, Sendable {
        /// The credential is not stored.
        case none = 0
        /// The credential is stored until the process ends.
        case forSession = 1
        /// The credential is stored in the file of ``URLCredentialStorage``.
        case permanent = 2
        /// Same effect as ``permanent``: credentials are not synchronized with other machines.
        @available(*, deprecated, message: "The same as permanent: nothing is shared with other machines")
        case synchronizable = 3
    }

    private enum Kind: Sendable {
        case password(user: String, password: String)
        case trust(ServerTrust)
        case identity(ClientIdentity)
    }
    private let kind: Kind
    /// How long a storage keeps the credential.
    open var persistence: Persistence { keeps }
    private let keeps: Persistence

    /// Creates a credential of a user and a password.
    public init(user: String, password: String, persistence: URLCredential.Persistence) {
        kind = .password(user: user, password: password)
        keeps = persistence
    }

    /// Creates a credential that accepts a server: the answer to a challenge of `NSURLAuthenticationMethodServerTrust`.
    ///
    /// Apple's initialiser takes a `SecTrust`; this one takes the value of ``URLProtectionSpace/serverTrust``.
    public init(trust: ServerTrust) {
        kind = .trust(trust)
        keeps = .none
    }

    /// Creates a credential from a client certificate and its key: the answer to a challenge of
    /// `NSURLAuthenticationMethodClientCertificate`.
    ///
    /// Apple's initialiser takes a `SecIdentity` and certificates; here the identity contains its chain.
    public init(identity: ClientIdentity, persistence: URLCredential.Persistence = .forSession) {
        kind = .identity(identity)
        keeps = persistence
    }

    convenience init(_ credential: Credential) {
        self.init(
            user: credential.user, password: credential.password, persistence: Persistence(credential.persistence))
    }

    /// The user name; `nil` if the credential is no password.
    open var user: String? {
        if case .password(let user, _) = kind { user } else { nil }
    }
    /// The password; `nil` if the credential has none.
    open var password: String? {
        if case .password(_, let password) = kind { password } else { nil }
    }
    /// Whether the credential has a password.
    open var hasPassword: Bool { password != nil }
    /// The client certificate and its key; `nil` for other credentials.
    public final var identity: ClientIdentity? {
        if case .identity(let identity) = kind { identity } else { nil }
    }

    /// The core's decision that corresponds to this credential.
    final var decision: ChallengeDecision {
        switch kind {
        case .password(let user, let password):
            .use(Credential(user: user, password: password, persistence: Credential.Persistence(keeps)))
        case .trust(let trust): .accept(trust)
        case .identity(let identity): .present(identity)
        }
    }

    /// The form that a credential store holds; `nil` if the credential is no password.
    final var stored: Credential? {
        guard case .password(let user, let password) = kind else { return nil }
        return Credential(user: user, password: password, persistence: Credential.Persistence(keeps))
    }

    /// The user name or the kind of the credential, without the password.
    open override var description: String { "<URLCredential \(user ?? (identity == nil ? "trust" : "identity"))>" }

    // MARK: Copying, comparing, archiving

    /// Returns the same object: a credential is immutable.
    open override func copy() -> Any { self }
    /// Returns the same object: a credential is immutable.
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

    /// Decodes a password credential; other kinds cannot be archived.
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
