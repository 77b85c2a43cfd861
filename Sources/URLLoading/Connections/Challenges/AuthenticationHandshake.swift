// SPDX-License-Identifier: Apache-2.0

// The messages that authenticate one connection, as a state machine that knows neither connections nor requests.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class AuthenticationHandshake {
    private enum Scheme {
        case ntlm(Credential)
        case negotiate(TicketProof)
    }
    private let scheme: Scheme
    let login: Login
    let isProxy: Bool
    /// A message was sent, or the connection was authenticated already.
    private(set) var hasSentMessage = false
    func noteSent() { hasSentMessage = true }

    /// The value of Authorization or Proxy-Authorization, and whether it is sent with the request itself.
    typealias Message = (value: String, isLast: Bool)

    /// Fails for a scheme that does not authenticate connections.
    /// - Parameter limit: the timeout of one Kerberos step.
    init?(_ login: Login, timeout limit: Duration) {
        guard login.opensConnections else { return nil }
        self.login = login
        isProxy = login.space.isProxy
        scheme = login.usesTickets ? .negotiate(TicketProof(login, timeout: limit)) : .ntlm(login.credential)
    }

    /// Returns the first message; `nil` if there is none, because the ticket has expired.
    /// - Parameter binding: the channel binding of the connection to the authenticating server or proxy (RFC 5929).
    func first(_ binding: [UInt8]?, _ load: LoadHandle) async throws(LoadError) -> Message? {
        switch scheme {
        case .ntlm:
            hasSentMessage = true
            return ("NTLM " + Base64.encode(NTLMNegotiate.bytes), false)
        case .negotiate(let proof):
            guard let begun = await proof.begin(binding, load) else { return nil }
            hasSentMessage = true
            return ("Negotiate " + Base64.encode(begun.token), begun.isComplete)
        }
    }

    /// Returns the answer to the server's token.
    func next(_ token: [UInt8], _ binding: [UInt8]?, _ load: LoadHandle) async throws(LoadError) -> Message {
        switch scheme {
        case .ntlm(let credential): return ("NTLM " + Base64.encode(try prove(credential, token, binding)), true)
        case .negotiate(let proof):
            guard case .continues(let reply, let isComplete) = await proof.step(token, load), !reply.isEmpty else {
                if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
                throw .handshakeFailed("the server's answer to the Kerberos ticket is invalid")
            }
            return ("Negotiate " + Base64.encode(reply), isComplete)
        }
    }

    /// Handles the response to a single message: the end of the proof, or a request for a further token.
    /// - Returns: whether a further message must be sent.
    func process(_ head: HTTPHead, _ load: LoadHandle) async throws(LoadError) -> Bool {
        guard case .negotiate(let proof) = scheme, proof.isOpen else { return false }
        if head.status == refusal {
            guard !login.isMultiRound, let token = token(in: head.headers),
                case .continues(_, isComplete: false) = await proof.step(token, load)
            else { return false }
            login.noteFurtherMessage()
            return true
        }
        guard let token = token(in: head.headers) ?? finalToken(in: head.headers) else { return false }
        guard case .continues(_, isComplete: true) = await proof.step(token, load) else {
            if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
            throw .handshakeFailed("the server did not prove by its Kerberos answer that it is \(login.space.host)")
        }
        return false
    }

    var refusal: Status { isProxy ? .proxyAuthenticationRequired : .unauthorized }

    private func prove(_ credential: Credential, _ token: [UInt8], _ binding: [UInt8]?) throws(LoadError) -> [UInt8] {
        guard let digest = LegacyDigest.shared else {
            throw LoadError(
                .authenticationFailed, phase: .waiting, party: .local,
                detail: "NTLM needs MD4 from OpenSSL's legacy provider, which is not installed")
        }
        let hashes = NTLMHashes(md4: { digest.md4($0) }, md5: { digest.md5($0) })
        guard let challenge = NTLMChallenge(token) else {
            throw .handshakeFailed("the server's NTLM challenge is invalid, or does not allow Unicode")
        }
        let sinceFirstYear = Date.now.timeIntervalSince1970 + 11_644_473_600
        let parameters = NTLMAuthenticate.Parameters(
            nonce: UInt64.random(in: .min ... .max).littleEndianBytes, time: UInt64(max(0, sinceFirstYear) * 1e7),
            service: "HTTP/" + login.space.host,
            channel: binding ?? [])
        let message = NTLMAuthenticate(user: credential.user, password: credential.password, hashes: hashes).bytes(
            challenge, parameters)
        guard let message else {
            throw LoadError(
                .authenticationFailed, phase: .waiting, party: .local, detail: "user or target is too long for NTLM")
        }
        return message
    }

    /// Returns the server's token in the response to a message.
    func token(in headers: Headers) -> [UInt8]? {
        token(of: headers.values(of: isProxy ? .proxyAuthenticate : .wwwAuthenticate))
    }

    /// Returns the final token, which Squid sends in another field.
    private func finalToken(in headers: Headers) -> [UInt8]? {
        token(of: headers.values(of: isProxy ? .proxyAuthenticationInfo : .authenticationInfo))
    }

    private func token(of values: [String]) -> [UInt8]? {
        let name = if case .ntlm = scheme { "NTLM" } else { "Negotiate" }
        return AuthenticationChallenge.parse(values)
            .first { $0.isOf(name) && $0.token68 != nil }.flatMap { $0.token68 }.flatMap { Base64.decode($0) }
    }
}

extension FixedWidthInteger {
    fileprivate var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
}

extension LoadError {
    /// Returns the error of a server or a proxy whose messages do not authenticate the connection.
    static func handshakeFailed(_ words: String) -> LoadError {
        LoadError(.authenticationFailed, phase: .waiting, party: .remote, detail: words)
    }
}
