// SPDX-License-Identifier: Apache-2.0

// The challenges of a response that the library can answer: RFC 9110 §11.6. Pure.

import URLLoadingWire

/// One authentication scheme that a server or proxy offers.
enum AuthenticationOffer: Sendable {
    case basic(realm: String?)
    case digest(DigestChallenge)
    case bearer(realm: String?)
    case negotiate
    case ntlm

    /// Returns the offers, the strongest first and equal ones in their order; unknown and disallowed schemes are left
    /// out.
    static func make(_ head: HTTPHead, isProxy: Bool, allowed: Set<Challenge.Method>?) -> [AuthenticationOffer] {
        let fields = head.headers.values(of: isProxy ? .proxyAuthenticate : .wwwAuthenticate)
        let offers = AuthenticationChallenge.parse(fields).compactMap { make($0) }
            .filter { offer in allowed.map { $0.contains(offer.method) } ?? true }
        return offers.indices.sorted { (offers[$1].strength, $0) < (offers[$0].strength, $1) }.map { offers[$0] }
    }

    private static func make(_ challenge: AuthenticationChallenge) -> AuthenticationOffer? {
        if let digest = DigestChallenge(challenge) { return .digest(digest) }
        // RFC 7617 §2 requires a realm. A challenge without one is answered with the credential stored for no realm.
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

    /// Whether a login of this space answers the challenge.
    func opens(_ space: ProtectionSpace) -> Bool { method == space.method && realm == space.realm }

    /// The rank of the scheme. Bearer comes last: a token is not comparable with a password.
    var strength: Int {
        switch self {
        case .negotiate: 6
        case .digest(let challenge):
            switch challenge.hash {
            case .sha512_256: 5
            case .sha256: 4
            case .md5: 3
            }
        // NTLM is bound to MD4: weaker than Digest, but the password is not sent in the clear.
        case .ntlm: 2
        case .basic: 1
        case .bearer: 0
        }
    }
}
