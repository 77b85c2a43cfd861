// What is said on one connection, message by message, until it is opened. It knows neither connections nor requests.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class ProofLegs: @unchecked Sendable {
    // Unchecked: used by the load's own task.
    private enum Scheme {
        case ntlm(Credential)
        case negotiate(TicketContext?)
    }
    private let scheme: Scheme
    private let host: String

    /// The value of Authorization, and whether it goes with the request itself.
    typealias Message = (value: String, isLast: Bool)

    init(ntlm credential: Credential, host: String) {
        scheme = .ntlm(credential)
        self.host = host
    }

    init(ticket context: TicketContext?, host: String) {
        scheme = .negotiate(context)
        self.host = host
    }

    func first(_ load: Load) async throws(LoadError) -> Message {
        switch scheme {
        case .ntlm: ("NTLM " + Base64.encode(NTLMNegotiate.bytes), false)
        case .negotiate(let context): try await step(context, [], load)
        }
    }

    /// The answer to what the server has said.
    func next(_ words: [UInt8], over transport: any Transport, _ load: Load) async throws(LoadError) -> Message {
        switch scheme {
        case .ntlm(let credential): ("NTLM " + Base64.encode(try prove(credential, words, transport)), true)
        case .negotiate(let context): try await step(context, words, load)
        }
    }

    private func step(_ context: TicketContext?, _ words: [UInt8], _ load: Load) async throws(LoadError) -> Message {
        guard case .goesOn(let said, let isComplete)? = await context?.step(words, load), !said.isEmpty else {
            if let reason = load.stopReason { throw LoadError(reason, phase: .waiting) }
            throw .proofBroken("what the server says to a ticket is no answer to it")
        }
        return ("Negotiate " + Base64.encode(said), isComplete)
    }

    private func prove(_ credential: Credential, _ words: [UInt8], _ transport: any Transport) throws(LoadError) -> [UInt8] {
        guard let digest = LegacyDigest.shared else {
            throw LoadError(
                .authenticationFailed, phase: .waiting, party: .local, detail: "NTLM needs MD4, of OpenSSL's legacy provider, and it is not installed")
        }
        let hashes = NTLMHashes(md4: { digest.md4($0) }, md5: { digest.md5($0) })
        guard let challenge = NTLMChallenge(words) else { throw .proofBroken("no challenge of NTLM, or none in Unicode") }
        let sinceFirstYear = Date.now.timeIntervalSince1970 + 11_644_473_600
        let circumstances = NTLMAuthenticate.Circumstances(
            nonce: UInt64.random(in: .min ... .max).littleEndianBytes, time: UInt64(max(0, sinceFirstYear) * 1e7), service: "HTTP/" + host,
            channel: (transport as? TLSTransport)?.endPointBinding ?? [])
        let message = NTLMAuthenticate(user: credential.user, password: credential.password, hashes: hashes).bytes(challenge, circumstances)
        guard let message else {
            throw LoadError(.authenticationFailed, phase: .waiting, party: .local, detail: "a user or a target too long for NTLM")
        }
        return message
    }

    /// What a server says in its answer to a message.
    func words(in headers: Headers) -> [UInt8]? {
        let name = if case .ntlm = scheme { "NTLM" } else { "Negotiate" }
        return Self.words(of: name, in: headers)
    }

    static func words(of scheme: String, in headers: Headers) -> [UInt8]? {
        AuthenticationChallenge.parse(headers.values(of: .wwwAuthenticate))
            .first { $0.isOf(scheme) && $0.token68 != nil }.flatMap { $0.token68 }.flatMap { Base64.decode($0) }
    }
}

extension FixedWidthInteger {
    fileprivate var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { Array($0) } }
}
