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
}
