/// Somebody wants to know who we are.
///
/// Protocol handlers ask with ``ProtocolClient/decide(_:)``. `http` and `https` do not ask yet: a 401
/// or 407 is the response (RFC 9110 §11).
public struct Challenge: Sendable {
    /// What is protected, and how.
    public let space: ProtectionSpace
    /// What the server has shown, if the method is `ServerTrust`: whether it is to be trusted.
    public internal(set) var serverTrust: ServerTrust?
    /// What the server wants to know, if the method is `ClientCertificate`: who we are.
    public internal(set) var clientCertificate: ClientCertificateRequest?
    /// What the one who asks would use, if the decision is ``ChallengeDecision/performDefaultHandling``.
    public let proposedCredential: Credential?
    /// How many credentials were refused before, at least 0.
    public let previousFailureCount: Int
    /// The response that refused the last.
    public let failureResponse: Response?

    public init(
        space: ProtectionSpace, proposedCredential: Credential? = nil, previousFailureCount: Int = 0,
        failureResponse: Response? = nil
    ) {
        self.space = space
        self.proposedCredential = proposedCredential
        self.previousFailureCount = previousFailureCount
        self.failureResponse = failureResponse
    }
}

/// A part of a server that one credential opens (RFC 9110 §11.5).
public struct ProtectionSpace: Sendable, Hashable {
    public let host: String
    public let port: Int
    /// The scheme of its URLs, such as `https`.
    public let scheme: String
    public let realm: String?
    /// The name of the authentication scheme, such as `Basic`; of a handler's own, any other.
    public let method: String
    /// It is a proxy that asks.
    public let isProxy: Bool

    public init(
        host: String, port: Int, scheme: String, realm: String? = nil, method: String, isProxy: Bool = false
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.realm = realm
        self.method = method
        self.isProxy = isProxy
    }
}

/// What proves who we are. Its description shows no secret.
public struct Credential: Sendable, Hashable, CustomStringConvertible {
    public let user: String
    public let password: String

    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    public var description: String { "credential of \(user)" }
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
    /// End the load as cancelled.
    case cancel
}
