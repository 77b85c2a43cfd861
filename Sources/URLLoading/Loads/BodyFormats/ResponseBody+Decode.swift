// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension ResponseBody {
    /// Collects the body and decodes it, by default as JSON.
    ///
    /// ```swift
    /// let user = try await session.load(request) { response, body in
    ///     try response.requireSuccess()
    ///     return try await body.decode(User.self)
    /// }
    /// ```
    /// The status and the content type are not checked: see ``Response/requireSuccess()``.
    /// - Parameters:
    ///   - type: the type to decode.
    ///   - decoder: the decoder to use.
    ///   - limit: the maximum number of bytes to collect, at least 0; 16 MiB by default, because a decoded value may be
    ///     many times larger than its text.
    /// - Throws: the errors of ``collect(upTo:)``; ``LoadError/Reason/undecodableBody`` if the bytes do not decode as
    ///   `type`. Cancellation ends the reading, not the decoding.
    @concurrent public func decode<T: Decodable & Sendable>(
        _ type: T.Type, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20
    ) async throws(LoadError) -> T {
        do throws(LoadError) {
            return try await collect(upTo: limit).decode(type, decoder: decoder, upTo: limit)
        } catch { throw error.at(source.url) }
    }
}

extension Data {
    /// Decodes a body that was collected before, with errors like those of loads.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: request)
    /// try response.requireSuccess()
    /// let user = try data.decode(User.self)
    /// ```
    /// - Parameters:
    ///   - type: the type to decode.
    ///   - decoder: the decoder to use.
    ///   - response: the response of the body; its URL becomes that of the error.
    ///   - limit: the maximum number of bytes to decode, at least 0; 16 MiB by default.
    /// - Throws: ``LoadError/Reason/undecodableBody`` with the decoder's error, and with the type and the key path in
    ///   its detail; or ``LoadError/Reason/bodyTooLarge``.
    public func decode<T: Decodable>(
        _ type: T.Type, from response: Response? = nil, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20
    ) throws(LoadError) -> T {
        guard count <= limit else { throw LoadError.tooLarge(limit).at(response?.url) }
        do {
            return try decoder.decode(type, from: self)
        } catch {
            throw LoadError(
                .undecodableBody, phase: .decoding, party: .remote, url: response?.url,
                detail: "no \(type)\(Self.words(error))", underlying: error)
        }
    }

    /// Describes a decoder's error without any value of the body, because errors get into logs.
    private static func words(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "" }
        switch error {
        case .keyNotFound(let key, let context): return ": \(path(context.codingPath + [key])) is missing"
        case .valueNotFound(let wanted, let context):
            return ": \(path(context.codingPath)) has no value, where \(name(wanted)) is required"
        case .typeMismatch(let wanted, let context): return ": \(path(context.codingPath)) is not \(name(wanted))"
        case .dataCorrupted(let context) where context.codingPath.isEmpty: return ": it is not JSON"
        case .dataCorrupted(let context): return ": \(path(context.codingPath)) has a value that the type cannot take"
        @unknown default: return ""
        }
    }

    /// Returns the JSON name of a container type.
    private static func name(_ type: any Any.Type) -> String {
        if type == [Any].self { return "an array" }
        if type == [String: Any].self { return "an object" }
        return "\(type)"
    }

    /// Returns a path like `order.items[2].price`. The server may choose keys: control characters are left out, and
    /// long paths are cut.
    private static func path(_ keys: [any CodingKey]) -> String {
        guard !keys.isEmpty else { return "the whole" }
        var text = ""
        for key in keys {
            text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? "" : ".") + key.stringValue
        }
        let visible = text.unicodeScalars.filter { $0.properties.generalCategory != .control }
        guard visible.count > longestPath else { return String(String.UnicodeScalarView(visible)) }
        return String(String.UnicodeScalarView(visible.prefix(longestPath))) + "…"
    }
    private static let longestPath = 200
}
