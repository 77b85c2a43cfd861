// SPDX-License-Identifier: Apache-2.0

/// An event of a request whose bearer token was refused.
package enum TokenRenewal: Sendable {
    /// The response that refused the token, whose body is not read, and the token's number (see `TokenUse.renew`).
    case refused(Response, token: Int)
    /// The session has the next token, and sends the request again.
    case sentAgain
}
