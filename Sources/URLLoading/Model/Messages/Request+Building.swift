// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

extension Request {
    /// Returns a request that sends a value as JSON (RFC 8259) and accepts JSON.
    ///
    /// ```swift
    /// let request = try Request.json(["name": "Ada"], to: url)
    /// ```
    /// - Parameters:
    ///   - value: the value to encode.
    ///   - url: the URL to load.
    ///   - method: POST by default.
    ///   - encoder: the encoder to use.
    /// - Throws: the error of the encoder.
    public static func json(
        _ value: some Encodable, to url: URL, method: Method = .post, encoder: JSONEncoder = JSONEncoder()
    ) throws -> Request {
        Request(
            url: url, method: method, headers: [.accept: "application/json"], body: try .json(value, encoder: encoder))
    }

    /// Returns a request that sends the fields of a form (``RequestBody/form(_:)``), in this order.
    ///
    /// ```swift
    /// let request = Request.form([("name", "Ada"), ("born", "1815")], to: url)
    /// ```
    /// - Parameters:
    ///   - fields: names and values, unescaped.
    ///   - url: the URL to load.
    ///   - method: POST by default.
    public static func form(_ fields: [(name: String, value: String)], to url: URL, method: Method = .post) -> Request {
        Request(url: url, method: method, body: .form(fields))
    }

    /// Appends items to the query of the URL; the query that is there stays as it is. All bytes but the unreserved ones
    /// are escaped (RFC 3986 §2.3), `+` and `&` among them, so that every server reads the same values.
    ///
    /// ```swift
    /// request.append(queryItems: [URLQueryItem(name: "q", value: "1 + 1")])   // …?q=1%20%2B%201
    /// ```
    public mutating func append(queryItems items: [URLQueryItem]) {
        guard let extended = URL(string: QueryItems.append(items, to: url.absoluteString)) else { return }
        url = extended
    }

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
