// SPDX-License-Identifier: Apache-2.0

// Requests below the base URL of a session, and loads that end with a decoded value.

public import FoundationEssentials
public import URLLoadingWire

extension Session {
    /// Returns a request below ``Configuration/baseURL``, with the session's default query items.
    ///
    /// ```swift
    /// configuration.baseURL = URL(string: "https://api.example.org/v1")
    /// configuration.defaultQueryItems = [URLQueryItem(name: "lang", value: "en")]
    /// let request = try session.request("users/ada lovelace", query: [URLQueryItem(name: "page", value: "2")])
    /// // https://api.example.org/v1/users/ada%20lovelace?lang=en&page=2
    /// ```
    /// - Parameters:
    ///   - path: appended to the path of the base URL with one slash between, whether it begins with one or not. It is
    ///     unescaped: what a path cannot contain is escaped, `?`, `#` and `%` among it. It cannot leave the base URL:
    ///     a text such as `https://other.example` is a path as well, and dot segments (`..`) are refused.
    ///   - method: GET by default.
    ///   - query: appended to the query of the base URL and to ``Configuration/defaultQueryItems``, of which those with
    ///     the same name are left out.
    /// - Throws: ``LoadError/Reason/badURL`` without a base URL, and for a path with dot segments.
    public nonisolated func request(
        _ path: String, method: Method = .get, query: [URLQueryItem] = []
    ) throws(LoadError) -> Request {
        guard let base = configuration.baseURL else { throw Self.badPath("Configuration.baseURL is not set") }
        guard path.split(separator: "/").allSatisfy({ $0 != "." && $0 != ".." }) else {
            throw Self.badPath("a path below the base URL has no dot segments")
        }
        let whole = base.absoluteString.prefix { $0 != "#" }
        let start = whole.prefix { $0 != "?" }
        let joined = PercentCoding.encodePath(path.drop { $0 == "/" }.utf8)
        let slash = start.hasSuffix("/") || joined.isEmpty ? "" : "/"
        let given = Set(query.map(\.name))
        let items = configuration.defaultQueryItems.filter { !given.contains($0.name) } + query
        let text = QueryItems.append(items, to: start + slash + joined + whole.dropFirst(start.count))
        guard let url = URL(string: text) else { throw Self.badPath("the base URL is not valid") }
        return Request(url: url, method: method)
    }

    private static func badPath(_ words: String) -> LoadError {
        LoadError(.badURL, phase: .preparing, party: .local, detail: words)
    }

    /// Loads a request, requires a status of 2xx, and decodes the body, by default as JSON.
    ///
    /// ```swift
    /// let user = try await session.decode(User.self, from: try session.request("users/7"))
    /// ```
    /// - Parameters:
    ///   - type: the type to decode.
    ///   - request: the request to load.
    ///   - decoder: the decoder to use.
    ///   - limit: the maximum number of bytes to decode, at least 0; 16 MiB by default.
    ///   - decisions: take precedence over the session's own.
    /// - Throws: the errors of ``data(for:decisions:)``; ``LoadError/Reason/unacceptableStatus``;
    ///   ``LoadError/Reason/undecodableBody``; ``LoadError/Reason/bodyTooLarge``. Cancelling the calling task ends the
    ///   load with ``LoadError/Reason/cancelled``.
    @concurrent
    public nonisolated func decode<T: Decodable & Sendable>(
        _ type: T.Type, from request: Request, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20,
        decisions: Decisions? = nil
    ) async throws(LoadError) -> T {
        let (data, response) = try await data(for: request, decisions: decisions)
        try response.requireSuccess()
        return try data.decode(type, from: response, decoder: decoder, upTo: limit)
    }

    /// Loads a URL with GET, and decodes the body; see ``decode(_:from:decoder:upTo:decisions:)``.
    @concurrent
    public nonisolated func decode<T: Decodable & Sendable>(
        _ type: T.Type, from url: URL, decoder: JSONDecoder = JSONDecoder()
    ) async throws(LoadError) -> T {
        try await decode(type, from: Request(url: url), decoder: decoder)
    }
}
