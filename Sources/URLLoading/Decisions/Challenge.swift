/// Somebody wants to know who we are, or has shown who he is.
///
/// `http` and `https` ask when a server answers 401, or a proxy 407 (RFC 9110 §11): once for each way to
/// authenticate that the response offers and this library knows, the strongest first. Protocol handlers ask with
/// ``ProtocolClient/decide(_:)``.
///
/// ```swift
/// decisions.challenge = Decision { challenge in
///     guard challenge.previousFailureCount == 0 else { return .performDefaultHandling }
///     return .use(Credential(user: "ada", password: try await vault.password(of: challenge.protectionSpace.host)))
/// }
/// ```
public struct Challenge: Sendable {
    /// What is protected, and how.
    public let protectionSpace: ProtectionSpace
    /// What the server has shown, if the method is `ServerTrust`: whether it is to be trusted.
    public internal(set) var serverTrust: ServerTrust?
    /// What the server wants to know, if the method is `ClientCertificate`: who we are.
    public internal(set) var clientCertificate: ClientCertificateRequest?
    /// What the one who asks would use, if the decision is ``ChallengeDecision/performDefaultHandling``. After a
    /// failure it is what was refused; nobody uses that again without being told to.
    public let proposedCredential: Credential?
    /// How many credentials were refused before in this load, at least 0.
    public let previousFailureCount: Int
    /// The response that asks, or that refused the last.
    public let failureResponse: Response?
    /// Why the last credential could not even be tried, if it was so.
    public let error: LoadError?

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

    /// A way to authenticate: the name of an authentication scheme (RFC 9110 §11.1), or of a handler's own. Compared
    /// without regard to case.
    public struct Method: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
        public let name: String

        public init(_ name: String) { self.name = name }
        public init(stringLiteral name: String) { self.init(name) }

        /// User and password, readable by whoever reads the request (RFC 7617).
        public static let basic = Method("Basic")
        /// A proof that the password is known (RFC 7616).
        public static let digest = Method("Digest")
        /// A token (RFC 6750).
        public static let bearer = Method("Bearer")
        /// Kerberos (RFC 4559). Asked about only where no ticket is there; a user is `name@REALM`.
        public static let negotiate = Method("Negotiate")
        /// User and password, where a protocol knows one way only: `ftp` and `ftps`.
        public static let `default` = Method("Default")
        /// Of a ``CredentialStore``: whichever is asked for.
        public static let any = Method("*")
        /// The older way of Windows.
        public static let ntlm = Method("NTLM")

        /// Whether a server is to be trusted.
        public static let serverTrust = Method("ServerTrust")
        /// A certificate of ours.
        public static let clientCertificate = Method("ClientCertificate")

        /// Asked of the session's decision first, of the load's own if there is none; all others the other way round.
        var isForSession: Bool { [.negotiate, .ntlm, .serverTrust, .clientCertificate].contains(self) }

        public var description: String { name }
        public static func == (a: Method, b: Method) -> Bool { a.name.lowercased() == b.name.lowercased() }
        public func hash(into hasher: inout Hasher) { hasher.combine(name.lowercased()) }
    }
}

/// What to do with a challenge.
public enum ChallengeDecision: Sendable {
    /// Try this.
    case use(Credential)
    /// Trust this server, whatever failed. The trust must be the challenge's own. Answers ``Challenge/serverTrust``, and
    /// nothing else.
    case accept(ServerTrust)
    /// Be this one. Answers ``Challenge/clientCertificate``, and nothing else.
    case present(ClientIdentity)
    /// As if nobody had been asked.
    case performDefaultHandling
    /// Not this way: the next way of the same response, if it offers one.
    case rejectProtectionSpace
    /// No credential, whatever else the response offers: it is the result (checklist 84). For ``Challenge/serverTrust`` and
    /// ``Challenge/clientCertificate`` the same as ``rejectProtectionSpace``.
    case continueWithoutCredential
    /// End the load as cancelled.
    case cancel
}
