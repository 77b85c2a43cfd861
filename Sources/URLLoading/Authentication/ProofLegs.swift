// What is said on one connection, message by message, until it is opened. It knows neither connections nor requests.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class ProofLegs: @unchecked Sendable {
    // Unchecked: used by the load's own task.
    private enum Scheme {
        case ntlm(Credential)
        case negotiate(TicketProof)
    }
    private let scheme: Scheme
    let login: Login
    let isProxy: Bool
    /// Something of it went out, or its connection was open already.
    private(set) var hasSpoken = false
    func wasHeard() { hasSpoken = true }

    /// The value of Authorization or Proxy-Authorization, and whether it goes with the request itself.
    typealias Message = (value: String, isLast: Bool)

    /// `nil` for what needs no connection of its own.
    /// - Parameter limit: how long one step of a ticket may take.
    init?(_ login: Login, timeout limit: Duration) {
        guard login.opensConnections else { return nil }
        self.login = login
        isProxy = login.space.isProxy
        scheme = login.isTicket ? .negotiate(TicketProof(login, timeout: limit)) : .ntlm(login.credential)
    }

    /// `nil` if there is nothing to say: the ticket there was is good no more.
    /// - Parameter binding: of the channel to whoever hears it (RFC 5929).
    func first(_ binding: [UInt8]?, _ load: LoadHandle) async throws(LoadError) -> Message? {
        switch scheme {
        case .ntlm:
            hasSpoken = true
            return ("NTLM " + Base64.encode(NTLMNegotiate.bytes), false)
        case .negotiate(let proof):
            guard let said = await proof.begin(binding, load) else { return nil }
            hasSpoken = true
            return ("Negotiate " + Base64.encode(said.words), said.isComplete)
        }
    }

    /// The answer to what the server has said.
    func next(_ words: [UInt8], _ binding: [UInt8]?, _ load: LoadHandle) async throws(LoadError) -> Message {
        switch scheme {
        case .ntlm(let credential): return ("NTLM " + Base64.encode(try prove(credential, words, binding)), true)
        case .negotiate(let proof):
            guard case .goesOn(let said, let isComplete) = await proof.step(words, load), !said.isEmpty else {
                if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
                throw .proofBroken("what the server says to a ticket is no answer to it")
            }
            return ("Negotiate " + Base64.encode(said), isComplete)
        }
    }

    /// What is said to a single message: the end of the proof, or that the server wants to hear more.
    /// - Returns: whether more is to be said.
    func hear(_ head: HTTPHead, _ load: LoadHandle) async throws(LoadError) -> Bool {
        guard case .negotiate(let proof) = scheme, proof.isOpen else { return false }
        if head.status == refusal {
            guard !login.takesLegs, let words = words(in: head.headers),
                case .goesOn(_, isComplete: false) = await proof.step(words, load)
            else { return false }
            login.takeLegs()
            return true
        }
        guard let words = words(in: head.headers) ?? finalWords(in: head.headers) else { return false }
        guard case .goesOn(_, isComplete: true) = await proof.step(words, load) else {
            if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
            throw .proofBroken("the server of a ticket does not prove that it is \(login.space.host)")
        }
        return false
    }

    var refusal: Status { isProxy ? .proxyAuthenticationRequired : .unauthorized }

    private func prove(_ credential: Credential, _ words: [UInt8], _ binding: [UInt8]?) throws(LoadError) -> [UInt8] {
        guard let digest = LegacyDigest.shared else {
            throw LoadError(
                .authenticationFailed, phase: .waiting, party: .local,
                detail: "NTLM needs MD4, of OpenSSL's legacy provider, and it is not installed")
        }
        let hashes = NTLMHashes(md4: { digest.md4($0) }, md5: { digest.md5($0) })
        guard let challenge = NTLMChallenge(words) else {
            throw .proofBroken("no challenge of NTLM, or none in Unicode")
        }
        let sinceFirstYear = Date.now.timeIntervalSince1970 + 11_644_473_600
        let circumstances = NTLMAuthenticate.Circumstances(
            nonce: UInt64.random(in: .min ... .max).littleEndianBytes, time: UInt64(max(0, sinceFirstYear) * 1e7),
            service: "HTTP/" + login.space.host,
            channel: binding ?? [])
        let message = NTLMAuthenticate(user: credential.user, password: credential.password, hashes: hashes).bytes(
            challenge, circumstances)
        guard let message else {
            throw LoadError(
                .authenticationFailed, phase: .waiting, party: .local, detail: "a user or a target too long for NTLM")
        }
        return message
    }

    /// What a server says in its answer to a message.
    func words(in headers: Headers) -> [UInt8]? {
        words(of: headers.values(of: isProxy ? .proxyAuthenticate : .wwwAuthenticate))
    }

    /// Squid says its last word there.
    private func finalWords(in headers: Headers) -> [UInt8]? {
        words(of: headers.values(of: isProxy ? .proxyAuthenticationInfo : .authenticationInfo))
    }

    private func words(of values: [String]) -> [UInt8]? {
        let name = if case .ntlm = scheme { "NTLM" } else { "Negotiate" }
        return AuthenticationChallenge.parse(values)
            .first { $0.isOf(name) && $0.token68 != nil }.flatMap { $0.token68 }.flatMap { Base64.decode($0) }
    }
}

extension FixedWidthInteger {
    fileprivate var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
}
