// SPDX-License-Identifier: Apache-2.0

// In this folder: credentials and challenges of the classic API

public import Foundation
import URLLoading

/// Receives the answer to a challenge in APIs without a completion handler: ``URLProtocol``, ``NSURLConnection`` and
/// ``NSURLDownload``. The first answer to a challenge counts; later ones have no effect.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    /// Answers the challenge with a credential.
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    /// Continues without a credential: the response that carried the challenge becomes the result.
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    /// Ends the load with `URLError.cancelled`.
    func cancel(_ challenge: URLAuthenticationChallenge)
    /// Answers as a session without a delegate would.
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    /// Rejects this protection space: the next authentication scheme that the server offers is tried, if there is one.
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

/// A challenge: a server or a proxy requests a credential, or presents a certificate to be trusted.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private let space: URLProtectionSpace
    private let proposed: URLCredential?
    private let failures: Int
    private let response: URLResponse?
    private let failure: (any Error)?
    private let answers: (any URLAuthenticationChallengeSender)?

    /// Creates a challenge, for protocol classes that authenticate.
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

    /// Creates a copy of a challenge whose answers go to another sender.
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

    /// The server or proxy, the realm and the authentication method of the challenge.
    open var protectionSpace: URLProtectionSpace { space }
    /// The credential used by default: the stored one, the one in the URL, or the one that the server refused last.
    open var proposedCredential: URLCredential? { proposed }
    /// How many credentials this protection space has refused in this load; 0 at first.
    open var previousFailureCount: Int { failures }
    /// The response that carried the challenge; `nil` for a challenge of the TLS handshake.
    open var failureResponse: URLResponse? { response }
    /// The error of the previous attempt, if it failed without a response.
    open var error: (any Error)? { failure }
    /// The object that receives the answer.
    open var sender: (any URLAuthenticationChallengeSender)? { answers }
}
