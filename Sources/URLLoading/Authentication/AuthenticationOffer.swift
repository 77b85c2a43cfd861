// What a response offers, as far as it can be answered here: RFC 9110 §11.6. Pure.

import URLLoadingIO
import URLLoadingWire

/// One way to authenticate.
enum AuthenticationOffer: Sendable {
    case basic(realm: String?)
    case digest(DigestChallenge)
    case bearer(realm: String?)
    case negotiate
    case ntlm

    /// The strongest first; among equals as they came. What is not known, or not allowed, is not among them.
    static func make(_ head: HTTPHead, isProxy: Bool, allowed: Set<Challenge.Method>?) -> [AuthenticationOffer] {
        let fields = head.headers.values(of: isProxy ? .proxyAuthenticate : .wwwAuthenticate)
        let offers = AuthenticationChallenge.parse(fields).compactMap { make($0) }
            .filter { offer in allowed.map { $0.contains(offer.method) } ?? true }
        return offers.indices.sorted { (offers[$1].strength, $0) < (offers[$0].strength, $1) }.map { offers[$0] }
    }

    private static func make(_ challenge: AuthenticationChallenge) -> AuthenticationOffer? {
        if let digest = DigestChallenge(challenge) { return .digest(digest) }
        // RFC 7617 §2 requires a realm; servers that forget it are answered all the same, by what is kept for none.
        if challenge.isOf("Basic") { return .basic(realm: challenge["realm"]) }
        if challenge.isOf("Bearer") { return .bearer(realm: challenge["realm"]) }
        if challenge.isOf("Negotiate"), challenge.token68 == nil { return .negotiate }
        if challenge.isOf("NTLM"), challenge.token68 == nil { return .ntlm }
        return nil
    }

    var method: Challenge.Method {
        switch self {
        case .basic: .basic
        case .digest: .digest
        case .bearer: .bearer
        case .negotiate: .negotiate
        case .ntlm: .ntlm
        }
    }

    var realm: String? {
        switch self {
        case .basic(let realm): realm
        case .digest(let challenge): challenge.realm
        case .bearer(let realm): realm
        case .negotiate, .ntlm: nil
        }
    }

    /// Only for requests whose body is known before it is sent.
    var needsBody: Bool {
        if case .digest(let challenge) = self { challenge.needsBody } else { false }
    }

    /// A token goes to whoever asks for it by name alone, so it is not weighed against passwords: it comes last.
    var strength: Int {
        switch self {
        case .negotiate: 6
        case .digest(let challenge):
            switch challenge.hash {
            case .sha512_256: 5
            case .sha256: 4
            case .md5: 3
            }
        // Bound to MD4: no proof to set beside Digest's, and no password in the clear.
        case .ntlm: 2
        case .basic: 1
        case .bearer: 0
        }
    }
}
