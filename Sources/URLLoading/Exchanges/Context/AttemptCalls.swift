// SPDX-License-Identifier: Apache-2.0

// The calls into handlers while a request that they have forwarded is attempted.

import URLLoadingWire

/// What a handler asks to be called for while its forwarded request is attempted, and what the handlers before it ask
/// for. The library repeats a request without calling its handlers again.
final class AttemptCalls: Sendable {
    typealias Fields = @Sendable (Request) async throws -> Headers

    private let outer: AttemptCalls?
    private let renewal: (@Sendable (TokenRenewal) -> Void)?
    private let fields: Fields?
    private let repeated: (@Sendable (HTTPHead) -> Void)?
    /// Whether a handler makes the fields of a repeated request anew.
    let makesFields: Bool

    /// - Parameters:
    ///   - outer: the calls of the handlers before this one.
    ///   - renewal: called with each bearer token that is renewed for the request.
    ///   - fields: returns all fields of a repeated request, made anew.
    ///   - repeated: called with the head of a response after which a retry policy repeats the request, before its
    ///     delay.
    init(
        _ outer: AttemptCalls?, renewal: (@Sendable (TokenRenewal) -> Void)? = nil, fields: Fields? = nil,
        repeated: (@Sendable (HTTPHead) -> Void)? = nil
    ) {
        (self.outer, self.renewal, self.fields, self.repeated) = (outer, renewal, fields, repeated)
        makesFields = fields != nil || outer?.makesFields == true
    }

    func renewed(_ token: TokenRenewal) {
        outer?.renewed(token)
        renewal?(token)
    }

    func repeats(after head: HTTPHead) {
        outer?.repeats(after: head)
        repeated?(head)
    }

    /// Returns the fields of the next attempt, those of each handler made from those of the handlers before it.
    func fields(for request: Request) async throws -> Headers {
        var request = request
        if let outer { request.headers = try await outer.fields(for: request) }
        return try await fields?(request) ?? request.headers
    }
}
