import URLLoadingWire

/// Tokens that some origins get with every request (RFC 6750 §2.1), and how a new one is got when there is none, or
/// the last was refused.
///
/// ```swift
/// configuration.authentication.bearer = try BearerTokens(for: ["https://api.example.org"], token: saved) { refusal in
///     try await account.refresh()
/// }
/// ```
/// Nobody else is sent the token, whatever redirects say. However many loads wait for a new one, the closure runs once,
/// in a task of its own; all get what it answers. Each load is sent again once; if the new token is refused too, the
/// response is the result. A load that ends does not end the closure while others wait; when nobody waits any more it
/// is cancelled. If it throws, those loads that waited end with ``LoadError/Reason/decisionFailed``.
///
/// Neither its description nor its reflection shows a token.
public struct BearerTokens: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let origins: Set<Origin>
    let token: String?
    let refresh: (@Sendable (Response?) async throws -> String)?

    /// - Parameters:
    ///   - origins: scheme, host and port, as in `https://api.example.org:8443`; what follows is not looked at.
    ///   - token: the first one; `nil` gets one before the first request.
    ///   - refresh: gets the next token; it is told the response that refused the last. `nil` if there is no next.
    /// - Throws: ``LoadError/Reason/badURL`` for what is no origin of http or https; ``LoadError/Reason/badRequest`` for a
    ///   token that no request can carry, such as one with the end of its line. One that `refresh` answers ends the loads
    ///   that wait with ``LoadError/Reason/badDecision``.
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

    static let grammar = "a token has letters, digits and -._~+/= in it, and nothing else (RFC 6750 2.1)"

    /// `tokens for https://api.example.org`.
    public var description: String { "tokens for " + origins.map(\.description).sorted().joined(separator: ", ") }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["origins": origins]) }
}
