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
        try await collect(upTo: limit).decode(type, decoder: decoder, upTo: limit)
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
    ///   - limit: the most bytes to decode, at least 0; 16 MiB by default.
    /// - Throws: ``LoadError/Reason/undecodableBody`` with the decoder's error, or
    ///   ``LoadError/Reason/bodyTooLarge``.
    public func decode<T: Decodable>(
        _ type: T.Type, decoder: JSONDecoder = JSONDecoder(), upTo limit: Int = 16 << 20
    ) throws(LoadError) -> T {
        guard count <= limit else { throw .tooLarge(limit) }
        do {
            return try decoder.decode(type, from: self)
        } catch {
            throw LoadError(.undecodableBody, phase: .decoding, party: .peer, detail: "no \(type)", underlying: error)
        }
    }
}
