// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

extension Request {
    /// Sets the Authorization field to Basic (RFC 7617) or, for a token, to Bearer (RFC 6750): sent with the first
    /// request, without waiting for a challenge. A redirect to another origin removes it. Over http both are readable
    /// on the way.
    ///
    /// ```swift
    /// try request.authorize(Credential(user: "ada", password: "secret"))
    /// ```
    /// - Throws: ``LoadError/Reason/badRequest`` for a user with a colon, for control characters, and for a token with
    ///   other characters than RFC 6750 §2.1 allows.
    public mutating func authorize(_ credential: Credential) throws(LoadError) {
        let value =
            credential.token.map { BearerAuthorization.value(token: $0) }
            ?? BasicAuthorization.value(user: credential.user, password: credential.password)
        guard let value else {
            throw LoadError(
                .badRequest, phase: .preparing, party: .local, url: url,
                detail: "the credential cannot be written into a field (RFC 7617 2, RFC 6750 2.1)")
        }
        headers[.authorization] = value
    }
}
