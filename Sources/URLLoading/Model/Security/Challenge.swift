// SPDX-License-Identifier: Apache-2.0

// In this folder: credentials, challenges, certificates and trust as the caller sees them

/// A request for credentials or a client certificate, or a server's certificate to be judged.
///
/// For `http` and `https` a challenge arises when a server answers 401, or a proxy 407 (RFC 9110 §11): once for each
/// supported authentication scheme that the response offers, the strongest first. Protocol handlers challenge with
/// ``ProtocolClient/decide(_:)``.
///
/// ```swift
/// decisions.challenge = Decision { challenge in
///     guard challenge.previousFailureCount == 0 else { return .performDefaultHandling }
///     return .use(Credential(user: "ada", password: try await vault.password(of: challenge.protectionSpace.host)))
/// }
/// ```
public struct Challenge: Sendable {
    /// The protected resource: host, realm and authentication method.
    public let protectionSpace: ProtectionSpace
    /// The server's certificate chain and the results of its checks, if the method is `ServerTrust`.
    public internal(set) var serverTrust: ServerTrust?
    /// The server's request for a client certificate, if the method is `ClientCertificate`.
    public internal(set) var clientCertificate: ClientCertificateRequest?
    /// The credential that ``ChallengeDecision/performDefaultHandling`` would use. After a failure it is the refused
    /// credential, which default handling does not use again.
    public let proposedCredential: Credential?
    /// The number of credentials refused before in this load and this protection space, at least 0. Another scheme of
    /// the same realm is another protection space.
    public let previousFailureCount: Int
    /// The response that requires authentication, or that refused the last credential.
    public let failureResponse: Response?
    /// The error for which the last credential could not be sent; `nil` if it was sent.
    public let error: LoadError?

    /// Creates a challenge, for handlers that authenticate (``ProtocolClient/decide(_:)``).
    public init(
        protectionSpace: ProtectionSpace, proposedCredential: Credential? = nil, previousFailureCount: Int = 0,
        failureResponse: Response? = nil, error: LoadError? = nil
    ) {
        self.protectionSpace = protectionSpace
        self.proposedCredential = proposedCredential
        self.previousFailureCount = previousFailureCount
        self.failureResponse = failureResponse
        self.error = error
    }

    /// An authentication method: the name of an authentication scheme (RFC 9110 §11.1), or of a handler's own method.
    /// Compared case-insensitively.
    public struct Method: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        /// The name, such as `Basic`.
        public let name: String

        /// Creates a method with a name of its own.
        public init(_ name: String) { self.name = name }
        public init(stringLiteral name: String) { self.init(name) }

        /// User and password, encoded but not encrypted (RFC 7617).
        public static let basic = Method("Basic")
        /// A digest that proves knowledge of the password (RFC 7616).
        public static let digest = Method("Digest")
        /// A bearer token (RFC 6750).
        public static let bearer = Method("Bearer")
        /// Kerberos (RFC 4559). Challenges arise only without a ticket; the user name is `name@REALM`.
        public static let negotiate = Method("Negotiate")
        /// User and password in a protocol with a single method: `ftp` and `ftps`.
        public static let `default` = Method("Default")
        /// Any method; for entries of a ``CredentialStore``.
        public static let any = Method("*")
        /// NTLM (MS-NTHT), Windows' predecessor of Kerberos.
        public static let ntlm = Method("NTLM")

        /// Whether to trust a server's certificate.
        public static let serverTrust = Method("ServerTrust")
        /// A client certificate.
        public static let clientCertificate = Method("ClientCertificate")

        /// True if the session's decision precedes the load's own; for other methods the load's own precedes.
        var isForSession: Bool { [.negotiate, .ntlm, .serverTrust, .clientCertificate].contains(self) }

        public var description: String { name }
        public static func == (a: Method, b: Method) -> Bool { a.name.lowercased() == b.name.lowercased() }
        public func hash(into hasher: inout Hasher) { hasher.combine(name.lowercased()) }
    }
}

/// The answer to a challenge.
public enum ChallengeDecision: Sendable {
    /// Use this credential.
    case use(Credential)
    /// Trust this server despite failed checks. The trust must be the challenge's own. Valid only for
    /// ``Challenge/serverTrust``.
    case accept(ServerTrust)
    /// Present this client certificate. Valid only for ``Challenge/clientCertificate``.
    case present(ClientIdentity)
    /// Proceed as without a decision.
    case performDefaultHandling
    /// Skip this authentication scheme: the next one of the same response is tried, if it offers one.
    case rejectProtectionSpace
    /// Send no credential: the response that requires it becomes the result, whatever other schemes it offers.
    /// For ``Challenge/serverTrust`` and ``Challenge/clientCertificate`` it equals ``rejectProtectionSpace``.
    case continueWithoutCredential
    /// Cancel the load.
    case cancel
}
