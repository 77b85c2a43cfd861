// SPDX-License-Identifier: Apache-2.0

/// A user with a password, or a bearer token. Neither its description nor its reflection shows a secret.
///
/// ```swift
/// .use(Credential(user: "ada", password: "secret", persistence: .none))
/// .use(.bearer(token))
/// ```
public struct Credential: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long an accepted credential is kept.
    public enum Persistence: String, Sendable, Hashable {
        /// Not kept: valid for one load only.
        case none
        /// In memory, as long as the store lives: used by later loads of the session.
        case session
        /// In memory and in the store's file, if it has one (``CredentialStore/init(file:)``).
        case permanent
    }

    /// The user name; empty for a token.
    public let user: String
    /// The password; empty for a token.
    public let password: String
    /// The bearer token; `nil` for a user with a password.
    public let token: String?
    /// How long stores keep the credential.
    public let persistence: Persistence

    /// Creates a credential of a user and a password.
    /// - Parameters:
    ///   - user: for ``Challenge/Method/basic`` it must contain no colon (RFC 7617 §2) and no control characters.
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

    /// A bearer token for ``Challenge/Method/bearer`` (RFC 6750 §2.1).
    public static func bearer(_ token: String, persistence: Persistence = .session) -> Credential {
        Credential(token: token, persistence: persistence)
    }

    /// Whether both hold the same secret, whatever their persistence.
    func proves(sameAs other: Credential) -> Bool {
        user == other.user && password == other.password && token == other.token
    }

    public var description: String { token == nil ? "credential of \(user)" : "bearer token" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["user": user, "persistence": persistence]) }
}
