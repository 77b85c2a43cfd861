public import FoundationEssentials

extension ResponseBody {
    /// Collects the body and decodes it.
    ///
    /// ```swift
    /// let user = try await session.load(request) { response, body in
    ///     try response.requireSuccess()
    ///     return try await body.decode(User.self)
    /// }
    /// ```
    /// Whatever the status and the content type are: see ``Response/requireSuccess()``.
    /// - Parameters:
    ///   - type: what to make of it.
    ///   - decoder: how.
    ///   - limit: the most bytes to collect, at least 0; 16 MiB by default, for a value may be many times
    ///     larger than its text.
    /// - Throws: what ``collect(upTo:)`` throws; ``LoadError/Reason/undecodableBody`` if the bytes are not
    ///   such a value. Cancellation ends the reading, not the decoding.
    @concurrent public func decode<T: Decodable & Sendable>(
        _ type: T.Type, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20
    ) async throws(LoadError) -> T {
        do throws(LoadError) {
            return try await collect(upTo: limit).decode(type, decoder: decoder, upTo: limit)
        } catch { throw error.at(source.url) }
    }
}

extension Data {
    /// Decodes a body that was collected before, with an error like those of loads.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: request)
    /// try response.requireSuccess()
    /// let user = try data.decode(User.self)
    /// ```
    /// - Parameters:
    ///   - type: what to make of it.
    ///   - decoder: how.
    ///   - response: what the body came with: its URL is that of the error.
    ///   - limit: the most bytes to decode, at least 0; 16 MiB by default.
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

    /// What a decoder has against a body, without a value of the body: errors end up in logs.
    private static func words(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "" }
        switch error {
        case .keyNotFound(let key, let context): return ": \(path(context.codingPath + [key])) is missing"
        case .valueNotFound(let wanted, let context):
            return ": \(path(context.codingPath)) has no value, where \(name(wanted)) is wanted"
        case .typeMismatch(let wanted, let context): return ": \(path(context.codingPath)) is not \(name(wanted))"
        case .dataCorrupted(let context) where context.codingPath.isEmpty: return ": it is not JSON"
        case .dataCorrupted(let context): return ": \(path(context.codingPath)) has a value that the type cannot take"
        @unknown default: return ""
        }
    }

    /// JSON's own words for its containers.
    private static func name(_ type: any Any.Type) -> String {
        if type == [Any].self { return "an array" }
        if type == [String: Any].self { return "an object" }
        return "\(type)"
    }

    /// `order.items[2].price`. Keys may be the server's choice: control characters are left out, and long paths are cut.
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
