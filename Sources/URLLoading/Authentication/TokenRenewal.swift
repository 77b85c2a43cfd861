// Handlers of this package see each bearer token that is renewed behind them, to record it; and renew one themselves
// where they answer in the place of a server, to replay it.

import URLLoadingIO
import URLLoadingWire

/// A moment of a request whose bearer token was refused.
package enum TokenRenewal: Sendable {
    /// The answer that refused the token, whose body is not read; and the number of the token, see `TokenUse.renew`.
    case refused(Response, token: Int)
    /// The session has the next token, and sends the request again.
    case sentAgain
}

/// A session's bearer token, in use for one request that a handler answers.
package struct TokenUse: Sendable {
    private let talk: AuthenticationTalk
    private let client: ProtocolClient

    fileprivate init?(_ talk: AuthenticationTalk, _ client: ProtocolClient) {
        guard talk.origin.issue != nil else { return nil }
        (self.talk, self.client) = (talk, client)
    }

    /// Gets the token after the one that was refused, once for each request, as a server's refusal does.
    /// - Parameter token: the number of the refused token, counted by its session from 0. If the session has a later
    ///   one already, no other is got: loads side by side are refused for one token, and renew it once. `nil`: the
    ///   token that the request has.
    /// - Returns: whether there is another token, with which the request is to be answered again.
    package func renew(_ token: Int?, after refusal: Response) async throws(LoadError) -> Bool {
        try client.enter()
        defer { client.leave() }
        if let token, let own = talk.origin.issue { talk.origin.issue = min(token, own) }
        return try await talk.renewToken(refusal) ?? false
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
        let talk = AuthenticationTalk(hop(for: request), load, destination)
        try await talk.begin()
        return TokenUse(talk, self)
    }
}

extension ProtocolClient.Next {
    /// The same as `load`, told of the tokens that are renewed behind this handler.
    package func load(
        _ request: Request, renewals: @escaping @Sendable (TokenRenewal) -> Void
    ) async throws(LoadError) -> ProtocolResponse {
        var hop = client.hop(for: request)
        let outer = hop.renewals
        hop.renewals = { renewal in
            outer?(renewal)
            renewals(renewal)
        }
        return try await client.forward(hop)
    }
}
