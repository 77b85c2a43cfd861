// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

/// The body of a response: a sequence of chunks, read as it is iterated.
///
/// The socket is read only on demand, so a slow consumer slows the peer and memory stays bounded. One consumer takes
/// the body, once; a second gets ``LoadError/Reason/bodyUnavailable``. A body passed to a closure is valid inside that
/// closure; the body of a ``LoadTask`` is valid as long as the load runs.
///
/// ```swift
/// for try await chunk in body {
///     file.write(Data(chunk))
/// }
/// ```
/// ``lines`` yields lines of text, ``bytes`` single bytes. Cancelling the load, or the task that iterates, ends the
/// iteration and the load with ``LoadError/Reason/cancelled``.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let source: any BodySource

    init(_ source: any BodySource) { self.source = source }

    public func makeAsyncIterator() -> Iterator { Iterator(source: source.claim() ? source : nil) }

    /// Iterates the chunks of one body.
    public struct Iterator: AsyncIteratorProtocol {
        let source: (any BodySource)?

        /// The next piece, never empty; `nil` at the end.
        /// - Throws: the ``LoadError`` of the load.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            // Without an actor the read runs in place; on an actor, decoding would occupy it, so the read runs
            // elsewhere.
            if actor == nil { return try await source.next() }
            return try await Self.nextOffActor(source)
        }

        /// The next piece, never empty; `nil` at the end.
        /// - Throws: the ``LoadError`` of the load.
        public mutating func next() async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            return try await Self.nextOffActor(source)
        }

        @concurrent private static func nextOffActor(_ source: any BodySource) async throws(LoadError) -> Chunk? {
            try await source.next()
        }
    }

    /// Collects the rest of the body.
    /// - Parameter limit: the maximum number of bytes to collect, at least 0. A longer body throws
    ///   ``LoadError/Reason/bodyTooLarge``.
    @concurrent public func collect(upTo limit: Int) async throws(LoadError) -> Data {
        guard source.claim() else { throw .bodyUnavailable }
        var data = Data()
        while let chunk = try await source.next() {
            guard chunk.count <= limit - data.count else { throw .tooLarge(limit) }
            data.append(chunk)
        }
        return data
    }

    /// The trailer fields of a chunked body (RFC 9112 §7.1.2); empty until the body has been read to its end.
    public var trailers: Headers { source.trailers }
}

/// The source of a body's chunks, for one consumer.
protocol BodySource: AnyObject, Sendable {
    /// Claims the body. Returns true only for the first call.
    func claim() -> Bool
    /// The next piece; `nil` at the end.
    func next() async throws(LoadError) -> Chunk?
    var trailers: Headers { get }
    /// The limits of the body's parts and events.
    var limits: Configuration.Limits { get }
    /// The URL of the load; `nil` for a body without a load.
    var url: URL? { get }
}

extension LoadError {
    static var bodyUnavailable: LoadError { LoadError(.bodyUnavailable, phase: .receiving, party: .local) }
}
