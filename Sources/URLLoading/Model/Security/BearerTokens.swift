// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// Bearer tokens for some origins (RFC 6750 §2.1), and the closure that gets a new one.
///
/// The token is sent with every request to these origins. The closure runs if there is no token, or if a server refused
/// it with a 401.
///
/// ```swift
/// configuration.authentication.bearer = try BearerTokens(for: ["https://api.example.org"], token: saved) { refusal in
///     try await account.newToken()
/// }
/// ```
/// No other origin is sent the token, whatever redirects say. However many loads wait for a new token, the closure runs
/// once, in a task of its own, and all of them get its result. Each load is sent again once; if the new token is
/// refused too, the response is the result. The closure is cancelled when all loads that wait for it have ended. If it
/// throws, the waiting loads end with ``LoadError/Reason/decisionFailed``, and so does every load whose refused token
/// was sent before; the next load calls it again. The closure may load with the same session:
/// its own loads are sent without a token.
///
/// Neither its description nor its reflection shows a token.
public struct BearerTokens: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let origins: Set<Origin>
    let token: String?
    let refresh: (@Sendable (Response?) async throws -> String)?

    /// Creates the tokens of some origins.
    /// - Parameters:
    ///   - origins: scheme, host and port, as in `https://api.example.org:8443`; a path is ignored.
    ///   - token: the first token; with `nil`, the closure gets one before the first request.
    ///   - refresh: returns the next token. Its argument is the response that refused the last token; `nil` if there
    ///     was no token. Without a closure a refused token is not renewed.
    /// - Throws: ``LoadError/Reason/badURL`` for an origin that is not http or https; ``LoadError/Reason/badRequest``
    ///   for a token that no request can carry, such as one with a line end. If `refresh` returns such a token, the
    ///   waiting loads end with ``LoadError/Reason/badDecision``.
    public init(
        for origins: [String], token: String? = nil, refresh: (@Sendable (Response?) async throws -> String)? = nil
    ) throws(LoadError) {
        var all: Set<Origin> = []
        for text in origins {
            do throws(WireViolation) { all.insert(try Target(text).origin) } catch {
                throw LoadError(error, .preparing)
            }
        }
        if let token, BearerAuthorization.value(token: token) == nil {
            throw LoadError(.badRequest, phase: .preparing, party: .local, detail: Self.grammar)
        }
        self.origins = all
        self.token = token
        self.refresh = refresh
    }

    static let grammar = "a token consists of letters, digits and -._~+/= only (RFC 6750 2.1)"

    /// `tokens for https://api.example.org`.
    public var description: String { "tokens for " + origins.map(\.description).sorted().joined(separator: ", ") }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["origins": origins]) }
}
