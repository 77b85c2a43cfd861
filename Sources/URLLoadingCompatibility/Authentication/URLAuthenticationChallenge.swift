public import Foundation
import URLLoading

/// Takes the answer to a challenge, where there is no completion handler for it: in ``URLProtocol`` and the older
/// classes. Each answer counts once; later ones have no effect.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    /// Goes on without one: the response that asked is the result.
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    /// Ends the load with `URLError.cancelled`.
    func cancel(_ challenge: URLAuthenticationChallenge)
    /// As if nobody had been asked.
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    /// Another of the methods that the server offers is asked for next, if there is one.
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

/// A server or a proxy wants to know who asks, or shows who it is.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    private let space: URLProtectionSpace
    private let proposed: URLCredential?
    private let failures: Int
    private let response: URLResponse?
    private let failure: (any Error)?
    private let answers: (any URLAuthenticationChallengeSender)?

    public init(
        protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
        previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = space
        proposed = credential
        failures = previousFailureCount
        self.response = response
        failure = error
        answers = sender
    }

    /// The same challenge, answered to somebody else.
    public init(
        authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        space = challenge.protectionSpace
        proposed = challenge.proposedCredential
        failures = challenge.previousFailureCount
        response = challenge.failureResponse
        failure = challenge.error
        answers = sender
    }

    convenience init(_ challenge: Challenge, _ request: URLRequest, sender: any URLAuthenticationChallengeSender) {
        self.init(
            protectionSpace: URLProtectionSpace(
                challenge.protectionSpace, trust: challenge.serverTrust, issuers: challenge.clientCertificate?.issuers),
            proposedCredential: challenge.proposedCredential.map { URLCredential($0) }
                ?? challenge.clientCertificate?.proposed.map { URLCredential(identity: $0) },
            previousFailureCount: challenge.previousFailureCount,
            failureResponse: challenge.failureResponse.map { URLResponse.make($0, to: request.httpMethod) },
            error: challenge.error.map { URLError($0) }, sender: sender)
    }

    /// Who asks, and how.
    open var protectionSpace: URLProtectionSpace { space }
    /// What would be used by default: what is stored, what the URL holds, or what was refused just now.
    open var proposedCredential: URLCredential? { proposed }
    /// How many credentials this space has refused in this load; 0 at first.
    open var previousFailureCount: Int { failures }
    /// The response that asked; `nil` if it was no response that did.
    open var failureResponse: URLResponse? { response }
    /// Why the last try failed, if it was no response that said so.
    open var error: (any Error)? { failure }
    /// Takes the answer.
    open var sender: (any URLAuthenticationChallengeSender)? { answers }
}
