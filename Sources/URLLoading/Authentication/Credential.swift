/// What proves who we are. Neither its description nor its reflection shows a secret.
///
/// ```swift
/// .use(Credential(user: "ada", password: "secret", persistence: .none))
/// .use(.bearer(token))
/// ```
public struct Credential: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is kept once it was accepted.
    public enum Persistence: String, Sendable, Hashable {
        /// Not at all: for this load alone.
        case none
        /// In memory, as long as the store lives: for later loads of the session.
        case session
        /// In the store's file too, if it has one (``CredentialStore/init(file:)``).
        case permanent
    }

    /// Empty if it is a token.
    public let user: String
    /// Empty if it is a token.
    public let password: String
    /// The bearer token; `nil` if it is a user with a password.
    public let token: String?
    public let persistence: Persistence

    /// - Parameters:
    ///   - user: for ``Challenge/Method/basic`` without a colon (RFC 7617 §2), and without control characters.
    public init(user: String, password: String, persistence: Persistence = .session) {
        self.user = user
        self.password = password
        self.persistence = persistence
        token = nil
    }

    private init(token: String, persistence: Persistence) {
        (user, password) = ("", "")
        self.token = token
        self.persistence = persistence
    }

    /// A token for ``Challenge/Method/bearer`` (RFC 6750 §2.1).
    public static func bearer(_ token: String, persistence: Persistence = .session) -> Credential {
        Credential(token: token, persistence: persistence)
    }

    /// The same secret, whatever its persistence.
    func proves(sameAs other: Credential) -> Bool {
        user == other.user && password == other.password && token == other.token
    }

    public var description: String { token == nil ? "credential of \(user)" : "bearer token" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["user": user, "persistence": persistence]) }
}
