public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// The body of a response, as it comes: a sequence of chunks, pulled by whoever iterates.
///
/// Nothing is read from the socket that was not asked for, so a slow consumer slows the peer and
/// memory stays bounded. One consumer takes the body, once; a second gets
/// ``LoadError/Reason/bodyUnavailable``. A body that a closure received is valid inside that closure;
/// one of a ``LoadTask``, as long as the load goes on.
///
/// ```swift
/// for try await chunk in body {
///     file.write(Data(chunk))
/// }
/// ```
/// ``lines`` gives lines of text, ``bytes`` single bytes. Cancelling the load, or the task that
/// iterates, ends the iteration and the load with ``LoadError/Reason/cancelled``.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let source: any BodySource

    init(_ source: any BodySource) { self.source = source }

    public func makeAsyncIterator() -> Iterator { Iterator(source: source.claim() ? source : nil) }

    /// The pieces of one body.
    public struct Iterator: AsyncIteratorProtocol {
        let source: (any BodySource)?

        /// The next piece, never empty; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            // In place where nobody is disturbed; off the actor where decoding would hold it up.
            if actor == nil { return try await source.next() }
            return try await Self.nextElsewhere(source)
        }

        /// The next piece, never empty; `nil` at the end.
        public mutating func next() async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            return try await Self.nextElsewhere(source)
        }

        @concurrent private static func nextElsewhere(_ source: any BodySource) async throws(LoadError) -> Chunk? {
            try await source.next()
        }
    }

    /// Collects what is left of the body.
    /// - Parameter limit: the most bytes to collect, at least 0. A longer body throws
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

    /// The fields after a chunked body (RFC 9112 §7.1.2); empty until the body has been read to its end.
    public var trailers: Headers { source.trailers }
}

/// Where the chunks of a body come from, for one consumer.
protocol BodySource: AnyObject, Sendable {
    /// Returns true once.
    func claim() -> Bool
    /// The next piece; `nil` at the end.
    func next() async throws(LoadError) -> Chunk?
    var trailers: Headers { get }
    /// What its parts and events may cost.
    var limits: Configuration.Limits { get }
    /// What was loaded; `nil` for a body by itself.
    var url: URL? { get }
}

extension LoadError {
    static var bodyUnavailable: LoadError { LoadError(.bodyUnavailable, phase: .receiving, party: .local) }
}
