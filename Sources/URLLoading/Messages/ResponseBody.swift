public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// The body of a response, as it comes: a sequence of chunks, pulled by whoever iterates.
///
/// Nothing is read from the socket that was not asked for, so a slow consumer slows the peer and
/// memory stays bounded. One consumer takes the body, once; a second gets
/// ``LoadError/Reason/bodyUnavailable``. Valid inside the scope that received it.
///
/// ```swift
/// for try await chunk in body {
///     file.write(Data(chunk))
/// }
/// ```
/// Cancelling the load ends the iteration with ``LoadError/Reason/cancelled``.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let source: BodySource

    init(_ source: BodySource) { self.source = source }

    public func makeAsyncIterator() -> Iterator { Iterator(source: source.claim() ? source : nil) }

    /// The pieces of one body.
    public struct Iterator: AsyncIteratorProtocol {
        let source: BodySource?

        /// The next piece, never empty; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            guard let source else { throw BodySource.unavailable }
            // In place where nobody is disturbed; off the actor where decoding would hold it up.
            if actor == nil { return try await source.next() }
            return try await Self.nextElsewhere(source)
        }

        /// The next piece, never empty; `nil` at the end.
        public mutating func next() async throws(LoadError) -> Chunk? {
            guard let source else { throw BodySource.unavailable }
            return try await Self.nextElsewhere(source)
        }

        @concurrent private static func nextElsewhere(_ source: BodySource) async throws(LoadError) -> Chunk? {
            try await source.next()
        }
    }

    /// Collects what is left of the body.
    /// - Parameter limit: the most bytes to collect, at least 0. A longer body throws
    ///   ``LoadError/Reason/bodyTooLarge``.
    @concurrent public func collect(upTo limit: Int) async throws(LoadError) -> Data {
        guard source.claim() else { throw BodySource.unavailable }
        return try await source.collect(upTo: limit)
    }

    /// The fields after a chunked body (RFC 9112 §7.1.2); empty until the body has been read to its end.
    public var trailers: Headers { source.trailers }
}

/// Guards an exchange that a caller can pass around: one reader at a time, none after the scope.
final class BodySource: Sendable {
    private let exchange: HTTPExchange
    private let state = Atomic<UInt8>(State.idle.rawValue)
    private let isClaimed = Atomic<Bool>(false)
    private let finalTrailers = Lock(Headers())

    private enum State: UInt8 { case idle, reading, closed }

    init(_ exchange: HTTPExchange) { self.exchange = exchange }

    static var unavailable: LoadError { LoadError(.bodyUnavailable, phase: .receiving, party: .local) }

    var response: Response { exchange.response }

    func claim() -> Bool { !isClaimed.exchange(true, ordering: .acquiringAndReleasing) }

    var trailers: Headers { finalTrailers.withLock { $0 } }

    func next() async throws(LoadError) -> Chunk? {
        try enter()
        defer { leave() }
        let chunk = try await exchange.next()
        if chunk == nil { keepTrailers() }
        return chunk
    }

    func collect(upTo limit: Int) async throws(LoadError) -> Data {
        var data = Data()
        while let chunk = try await next() {
            guard chunk.count <= limit - data.count else { throw HTTPExchange.tooLarge(limit) }
            data.append(chunk)
        }
        return data
    }

    private func enter() throws(LoadError) {
        guard move(from: .idle, to: .reading) else { throw Self.unavailable }
    }

    /// Closed while we read: the last one out releases, and ends the load.
    private func leave() {
        guard !move(from: .reading, to: .idle) else { return }
        exchange.release()
        exchange.load.end()
    }

    private func keepTrailers() {
        let trailers = exchange.trailers
        if !trailers.isEmpty { finalTrailers.withLock { $0 = trailers } }
    }

    /// No more reads. Returns false if somebody is inside one: he is woken, and ends the load.
    func close() -> Bool {
        switch State(rawValue: state.exchange(State.closed.rawValue, ordering: .acquiringAndReleasing)) {
        case .reading:
            exchange.load.stop(.cancelled)
            return false
        case .idle: exchange.release()
        case .closed, nil: break
        }
        return true
    }

    private func move(from: State, to: State) -> Bool {
        state.compareExchange(expected: from.rawValue, desired: to.rawValue, ordering: .acquiringAndReleasing).exchanged
    }
}
