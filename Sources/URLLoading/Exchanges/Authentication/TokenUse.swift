// SPDX-License-Identifier: Apache-2.0

// Lets handlers of this package observe token renewals, in order to record them; and renew tokens themselves where they
// answer in place of a server, in order to replay them.

/// A session's bearer token, in use for one request that a handler answers.
package struct TokenUse {
    private let authentication: RequestAuthentication
    private let client: ProtocolClient

    fileprivate init?(_ authentication: RequestAuthentication, _ client: ProtocolClient) {
        guard authentication.origin.issue != nil else { return nil }
        (self.authentication, self.client) = (authentication, client)
    }

    /// Gets the token after the refused one, at most once for each request, as after a server's refusal.
    /// - Parameter token: the number of the refused token, counted by the session from 0; `nil` for the token of the
    ///   request. If the session already has a later token, no other is fetched, so that concurrent loads refused with
    ///   one token renew it once.
    /// - Returns: whether there is another token, with which the request must be answered again.
    package func renew(_ token: Int?, after refusal: Response) async throws(LoadError) -> Bool {
        try client.enter()
        defer { client.leave() }
        if let token, let own = authentication.origin.issue { authentication.origin.issue = min(token, own) }
        return try await authentication.renewToken(refusal) ?? false
    }
}

extension ProtocolClient {
    /// Takes the session's token for `request`, and gets the first one if there is none yet.
    /// - Returns: `nil` if the session has no tokens for this origin, or the request has an Authorization of its own.
    package func takeToken(for request: Request) async throws(LoadError) -> TokenUse? {
        guard let bearer = load.core.authenticator.bearer, case .success(let destination) = request.destination,
            bearer.serves(destination.route.origin)
        else { return nil }
        try enter()
        defer { leave() }
        let authentication = RequestAuthentication(hop(for: request), load, destination)
        try await authentication.begin()
        return TokenUse(authentication, self)
    }
}

extension ProtocolClient.Next {
    /// Loads as `load` does, and calls `renewals` when the part of the handler chain behind this handler renews the
    /// request's bearer token: with the refusal, and again when the request is sent with the new token.
    package func load(
        _ request: Request, renewals: @escaping @Sendable (TokenRenewal) -> Void
    ) async throws(LoadError) -> ProtocolResponse {
        var hop = client.hop(for: request)
        hop.calls = AttemptCalls(hop.calls, renewal: renewals)
        return try await client.forward(hop)
    }
}
