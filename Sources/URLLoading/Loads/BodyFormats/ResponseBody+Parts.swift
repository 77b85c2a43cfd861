// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

extension ResponseBody {
    /// The parts of a multipart body as they arrive (RFC 2046 §5.1): `multipart/x-mixed-replace` of cameras,
    /// `multipart/byteranges` (RFC 9110 §14.6), `multipart/mixed`, `multipart/form-data`. The sequence claims the body,
    /// as iterating the body does.
    ///
    /// ```swift
    /// try await session.load(request) { response, body in
    ///     for try await part in try body.parts(of: response) {
    ///         let frame = try await part.body.collect(upTo: 1 << 20)
    ///         show(frame, part.response.mediaType)
    ///     }
    /// }
    /// ```
    /// Parts are read in order: the unread rest of a part is skipped when the next part is requested, and bytes are
    /// read only on request. A part ends where the next begins, so the end of a frame is known when the next one
    /// starts.
    ///
    /// A body that ends without its closing delimiter throws ``LoadError/Reason/truncatedMultipart``. Bodies of
    /// `multipart/x-mixed-replace` are exempt, because senders commonly end them by closing the connection: there the
    /// last part just ends, and may be incomplete.
    /// - Parameter response: the response that this body belongs to.
    /// - Throws: ``LoadError/Reason/unacceptableContentType`` if the response is not multipart,
    ///   ``LoadError/Reason/malformedBoundary`` if its media type has no valid boundary.
    public func parts(of response: Response) throws(LoadError) -> Parts {
        let type = response.http?.headers[.contentType] ?? response.mediaType.map { "\($0)" } ?? ""
        let essence = PartReader.essence(type)
        guard essence.hasPrefix("multipart/") else {
            throw LoadError(
                refusing: response, .unacceptableContentType,
                "the type is \(response.mediaType?.essence ?? "not stated"), and multipart is required")
        }
        do throws(WireViolation) {
            let boundary = try MultipartBoundary(contentType: type)
            return Parts(
                body: self, response: response, boundary: boundary, isReplacing: essence == "multipart/x-mixed-replace")
        } catch {
            throw LoadError(error, .receiving).at(response.url)
        }
    }

    /// The parts of a multipart body. One consumer takes them, once.
    public struct Parts: AsyncSequence, Sendable {
        public typealias Element = ResponsePart
        public typealias Failure = LoadError

        let body: ResponseBody
        let response: Response
        let boundary: MultipartBoundary
        let isReplacing: Bool

        public func makeAsyncIterator() -> Iterator {
            let source = body.source
            guard source.claim() else { return Iterator(reader: nil) }
            return Iterator(reader: PartReader(source, response, boundary, isReplacing: isReplacing))
        }

        /// The iterator of the sequence.
        public struct Iterator: AsyncIteratorProtocol {
            let reader: PartReader?

            /// Returns the next part; `nil` after the last.
            /// - Throws: ``LoadError`` of the load, of a malformed body, or of a body that exceeds
            ///   ``Configuration/Limits``. Cancellation ends the load with ``LoadError/Reason/cancelled``.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> ResponsePart? {
                guard let reader else { throw .bodyUnavailable }
                if actor == nil { return try await reader.nextPart() }
                return try await Self.nextOffActor(reader)
            }

            /// The next part; `nil` after the last.
            /// - Throws: the ``LoadError`` of the load.
            public mutating func next() async throws(LoadError) -> ResponsePart? {
                guard let reader else { throw .bodyUnavailable }
                return try await Self.nextOffActor(reader)
            }

            @concurrent private static func nextOffActor(_ reader: PartReader) async throws(LoadError) -> ResponsePart?
            {
                try await reader.nextPart()
            }
        }
    }
}

/// One part of a multipart body; see ``ResponseBody/parts(of:)``.
public struct ResponsePart: Sendable {
    /// The fields of this part. There may be none.
    public let headers: Headers
    /// The content of the part as it arrives. Once the next part was requested, reading the rest throws
    /// ``LoadError/Reason/bodyUnavailable``.
    public let body: ResponseBody
    private let whole: Response

    init(headers: Headers, body: ResponseBody, of whole: Response) {
        self.headers = headers
        self.body = body
        self.whole = whole
    }

    /// The part as a response: URL, status, version and fields of the whole response, with the fields about the body
    /// replaced by the part's own. Created anew at each call.
    public var response: Response { Self.response(with: headers, of: whole) }

    package static func response(with headers: Headers, of whole: Response) -> Response {
        let type = headers[.contentType].flatMap { MediaType($0) }
        let length = headers[.contentLength].flatMap { ByteLength.parse($0) }
        let http = whole.http.map {
            HTTPHead(status: $0.status, version: $0.version, headers: merged($0.headers, headers))
        }
        return Response(url: whole.url, mediaType: type, expectedLength: length, http: http)
    }

    private static let wholeBodyFields: [FieldName] = [
        .contentType, .contentLength, .contentEncoding, .contentRange, .contentDisposition, .transferEncoding,
        "Trailer",
        "Content-MD5", "Content-Digest",
    ]

    private static func merged(_ fields: Headers, _ headers: Headers) -> Headers {
        var merged = fields
        for name in wholeBodyFields { merged.remove(name) }
        for field in headers { merged.remove(field.name) }
        for field in headers { merged.append(field.name, field.value) }
        return merged
    }
}

private enum ByteLength {
    /// Parses digits only, up to 2^63 - 1.
    static func parse(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }
}
