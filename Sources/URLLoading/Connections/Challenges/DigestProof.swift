// SPDX-License-Identifier: Apache-2.0

// Checks the server's own proof after a Digest authentication (RFC 7616 §3.5): that the server knows the password too.
// With auth-int the proof covers the body, and is checked at its end.

import URLLoadingWire

final class DigestProof {
    private let authorization: DigestAuthorization
    private let target: [UInt8]
    private let field: FieldName
    private var information: AuthenticationChallenge?
    private let body: BodyHash

    init(_ authorization: DigestAuthorization, _ target: [UInt8], isProxy: Bool) {
        self.authorization = authorization
        self.target = target
        field = isProxy ? .proxyAuthenticationInfo : .authenticationInfo
        body = BodyHash(Login.kind(authorization.challenge.hash))
    }

    /// - Returns: true if the check is complete, because the proof does not cover the body.
    func process(_ headers: Headers) throws(LoadError) -> Bool {
        guard let text = headers[field], let information = AuthenticationChallenge.information(text) else {
            return true
        }
        if authorization.coversBody(information) {
            self.information = information
            return false
        }
        try check(information, bodyHash: nil)
        return true
    }

    func process(_ piece: Chunk) { body.update(piece) }

    /// Checks the proof at the end of the body.
    func end() throws(LoadError) {
        guard let information else { return }
        self.information = nil
        try check(information, bodyHash: body.finish())
    }

    private func check(_ information: AuthenticationChallenge, bodyHash: String?) throws(LoadError) {
        guard !authorization.isProved(by: information, target: target, bodyHash: bodyHash) else { return }
        throw .handshakeFailed("rspauth of \(field) is wrong: the server does not know the password")
    }
}

extension [DigestProof] {
    /// Passes a piece to the proofs of the origin and of the proxy.
    func process(_ piece: BodyPiece?) throws(LoadError) {
        for proof in self {
            switch piece {
            case .chunk(let chunk)?: proof.process(chunk)
            case .end?: try proof.end()
            case nil: return
            }
        }
    }
}
